//! Launches that are recorded once and replayed: a graph of CUDA and HIP, which the driver launches at once, and on other devices a list
//! of CubeCL's. Shapes, buffers and the numbers that kernels take as arguments stay what they were.

use burn_cubecl::cubecl::client::{Client, Graph};

/// Launches that were recorded.
pub struct Recorded(Graph);

impl Recorded {
    /// Runs `work`, records what it launches a second time, and returns the result of the first time with the recording, or with why there
    /// is none. The first time shows how much memory `work` needs: a recording takes no more of it, and reads and writes nothing of the
    /// host. Kernels must have been compiled and chosen before.
    pub fn of<T>(client: &Client, mut work: impl FnMut() -> T) -> (T, Result<Self, String>) {
        let prepared = client.graph_prepare();
        let first = work();
        let recorded = prepared.and_then(|()| {
            let started = client.start_capture();
            if started.is_ok() {
                work();
            }
            // What was prepared must be stopped even if it could not be started.
            let graph = client.stop_capture();
            started.and(graph)
        });
        (first, recorded.map(Self).map_err(|error| error.to_string()))
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
