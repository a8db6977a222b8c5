//! Launches that are recorded once and replayed. On CUDA and HIP the recording is a graph that the driver launches at once, on
//! other devices a list of CubeCL's. Shapes, buffers and scalar arguments of kernels stay the same.

use burn::tensor::Bytes;
use burn_cubecl::cubecl::client::{Client, Graph};
use burn_cubecl::cubecl::server::Handle;
use burn_cubecl::tensor::CubeTensor;

/// A recording of launches.
pub(crate) struct Recorded(Graph);

impl Recorded {
    /// Runs `work`, then records its launches a second time without running them. Returns the recording, or the reason why it
    /// failed. Kernels must have been compiled and autotuned before. The first run shows how much memory `work` needs, since a
    /// recording cannot get more. `slack` is allocated during the first run, for memory that the second run frees later.
    /// `written` are the buffers that `work` writes and that are read afterwards.
    pub(crate) fn record(
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
            // A prepared capture must be stopped even if it could not be started.
            let graph = client.stop_capture();
            started.and(graph)
        });
        recorded.map(Self).map_err(|error| {
            // CubeCL treats the results of the first run as unwritten, because the second run was only recorded, not executed. On
            // CUDA and HIP, an empty write from the host corrects this; with WebGPU it would overwrite the buffer.
            if !client.name().starts_with("wgpu") {
                written.into_iter().for_each(|handle| client.write(&handle, Bytes::from_bytes_vec(Vec::new())));
            }
            error.to_string()
        })
    }

    /// Launches everything again, without waiting for the end.
    ///
    /// # Errors
    /// If the device refuses the launch.
    ///
    /// # Safety
    /// Every buffer that was read or written must still exist at its address.
    pub(crate) unsafe fn replay(&self) -> Result<(), String> {
        // SAFETY: promised by the caller. The replaying thread also reads and writes the buffers, and its stream keeps the order.
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
    use crate::gpu_backends::any_gpu;
    use crate::ops::cube::launch::{buffer, cube_dim, empty, grid, primitive};
    use crate::ops::to_host;

    #[cube(launch)]
    fn add_one(x: &mut [f32], count: usize) {
        if ABSOLUTE_POS < count {
            x[ABSOLUTE_POS] += 1f32;
        }
    }

    /// Recording runs the step once; each replay runs it again. Recording fails if the step needs more memory than the first run plus slack.
    #[test]
    fn a_recording_is_run_by_its_replays() {
        let Some(device) = any_gpu() else { return };
        const LARGE: usize = 3_000_001;
        for (slack, more, is_recorded) in [(None, None, true), (Some(LARGE), Some(LARGE), true), (None, Some(9 * LARGE), false)] {
            let x = primitive(Tensor::<1>::zeros([5], &device));
            let large = |size: Option<usize>| size.map(|size| empty(&x, [size], DType::F32)).into_iter().collect::<Vec<_>>();
            let (mut runs, mut kept) = (0, Vec::new());
            let recorded = Recorded::record(
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
                // SAFETY: x exists, and other written buffers are not read.
                unsafe { recorded.replay() }.unwrap();
                assert_eq!(values(), [2.0; 5]);
            }
        }
    }
}
