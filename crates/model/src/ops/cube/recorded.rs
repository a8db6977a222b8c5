//! Launches that are recorded once and replayed: a graph of CUDA and HIP, which the driver launches at once, and on other devices a list
//! of CubeCL's. Shapes, buffers and the numbers that kernels take as arguments stay what they were.

use burn::tensor::Bytes;
use burn_cubecl::cubecl::client::{Client, Graph};
use burn_cubecl::cubecl::server::Handle;
use burn_cubecl::tensor::CubeTensor;

/// Launches that were recorded.
pub struct Recorded(Graph);

impl Recorded {
    /// Runs `work`, records what it launches a second time without running it, and returns the recording, or why there is none. Kernels
    /// must have been compiled and chosen before. The first time shows how much memory `work` needs: a recording takes no more of it.
    /// `slack` is memory that is held while it runs, for what is given back later the second time. `written`: what `work` writes and is
    /// read afterwards.
    pub fn of(
        client: &Client,
        slack: impl FnOnce() -> Vec<CubeTensor>,
        written: impl IntoIterator<Item = Handle>,
        mut work: impl FnMut(),
    ) -> Result<Self, String> {
        let prepared = client.graph_prepare();
        let slack = prepared.is_ok().then(slack);
        work();
        drop(slack);
        let recorded = prepared.and_then(|()| {
            let started = client.start_capture();
            if started.is_ok() {
                work();
            }
            // What was prepared must be stopped even if it could not be started.
            let graph = client.stop_capture();
            started.and(graph)
        });
        recorded.map(Self).map_err(|error| {
            // What the first run has written is there, and CubeCL takes it for unwritten, as nothing of the second was run. On CUDA and HIP
            // a write from the host, though of nothing, says otherwise; with WebGPU it would write.
            if !client.name().starts_with("wgpu") {
                written.into_iter().for_each(|handle| client.write(&handle, Bytes::from_bytes_vec(Vec::new())));
            }
            error.to_string()
        })
    }

    /// Launches all of it again, without waiting for its end.
    ///
    /// # Errors
    /// If the device does not take it.
    ///
    /// # Safety
    /// Every buffer that was read or written must still be there, and where it was.
    pub unsafe fn replay(&self) -> Result<(), String> {
        // SAFETY: the caller's. Buffers are written and read by the thread that replays, whose stream keeps their order.
        unsafe { self.0.replay() }.map_err(|error| error.to_string())
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::backend::Cube;
    use burn::tensor::{DType, Tensor};
    use burn_cubecl::cubecl;
    use burn_cubecl::cubecl::prelude::*;

    use super::*;
    use crate::interfaces::any_gpu;
    use crate::ops::cube::launch::{buffer, cube_dim, empty, grid, primitive};
    use crate::ops::to_host;

    #[cube(launch)]
    fn add_one(x: &mut [f32], count: usize) {
        if ABSOLUTE_POS < count {
            x[ABSOLUTE_POS] += 1f32;
        }
    }

    /// What a recording runs, it runs once, and again with each replay. One that needs more memory than the first run and the slack is none.
    #[test]
    fn a_recording_is_run_by_its_replays() {
        let Some(device) = any_gpu() else { return };
        const LARGE: usize = 3_000_001;
        for (slack, more, is_recorded) in [(None, None, true), (Some(LARGE), Some(LARGE), true), (None, Some(9 * LARGE), false)] {
            let x = primitive(Tensor::<1>::zeros([5], &device));
            let large = |size: Option<usize>| size.map(|size| empty(&x, [size], DType::F32)).into_iter().collect::<Vec<_>>();
            let (mut runs, mut kept) = (0, Vec::new());
            let recorded = Recorded::of(
                &x.client,
                || large(slack),
                [],
                || {
                    runs += 1;
                    if runs == 2 {
                        kept = large(more);
                    }
                    add_one::launch(&x.client, grid(1), cube_dim(), buffer(&x), 5);
                },
            );
            assert_eq!((recorded.is_ok(), runs), (is_recorded, 2), "{:?}", recorded.err());
            if let Ok(recorded) = recorded {
                let values = || to_host(Tensor::<1>::from_primitive::<Cube>(x.clone()));
                assert_eq!(values(), [1.0; 5]);
                // SAFETY: x is there, and what else is written is not read.
                unsafe { recorded.replay() }.unwrap();
                assert_eq!(values(), [2.0; 5]);
            }
        }
    }
}
