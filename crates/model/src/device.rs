//! The device of a run, chosen at run time. Every tensor is created on an explicit device. burn's default device is never used:
//! in a build with a GPU backend it is a GPU.

use anyhow::{Result, bail};
use burn::backend::DispatchDevice;
use burn::tensor::{Device, StreamId};

use super::devices::in_words;
use super::gpu_backends::find_devices;

/// True if fused operations run on this device, on memory that the host reads without a transfer.
pub fn is_cpu(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Flex(_))
}

/// Returns true if this build has the backend, and the backend finds a GPU.
pub fn is_here(backend: &str) -> bool {
    #[cfg(feature = "cuda")]
    if backend == "cuda" && super::cuda_paths::missing().is_some() {
        return false;
    }
    find_devices(backend).is_some_and(|found| !found.is_empty())
}

/// Returns the CPU, or for (backend, index) that GPU of one of the [`GPU_BACKENDS`](super::gpu_backends::GPU_BACKENDS). A GPU is
/// opened and logged.
///
/// # Errors
/// If the build lacks the backend, the GPU does not exist, or the GPU cannot be opened. The message lists the available devices.
pub fn open(gpu: Option<(&str, usize)>) -> Result<Device> {
    let Some((backend, index)) = gpu else { return Ok(Device::flex()) };
    let Some(found) = find_devices(backend) else {
        let place = if backend == "metal" && !cfg!(target_vendor = "apple") { " on a Mac" } else { "" };
        bail!("this build has no {backend}: build with `--features {backend}`{place}, or use another device: {}", in_words());
    };
    #[cfg(feature = "cuda")]
    if backend == "cuda"
        && let Some(missing) = super::cuda_paths::missing()
    {
        bail!("{missing}; devices: {}", in_words());
    }
    let Some(device) = found.get(index) else {
        let count = match found.len() {
            0 => format!("{backend} finds no GPU (is its driver installed, and is the GPU visible?)"),
            1 => format!("{backend} finds 1 GPU, {backend}:0"),
            count => format!("{backend} finds {count} GPUs, from {backend}:0 to {backend}:{}", count - 1),
        };
        bail!("{count}; devices: {}", in_words());
    };
    #[cfg(feature = "gpu")]
    {
        let name = format!("{backend}:{index}");
        match super::devices::describe(name.clone(), device) {
            Ok(found) => tracing::info!("device {}", found.in_words()),
            Err(why) => bail!("{name} cannot be opened: {why}; devices: {}", in_words()),
        }
        super::device_failure::watch(&name);
    }
    Ok(device.clone())
}

/// The GPU stream of a thread. The work of two threads has no order unless one waits for the other, which is slow and cannot be
/// recorded. So a thread that works with another thread's tensors adopts that thread's stream.
#[derive(Clone, Copy, Debug)]
pub struct GpuStream(StreamId);

impl GpuStream {
    /// Returns the stream of the calling thread, which must no longer use its tensors.
    pub fn current() -> Self {
        Self(StreamId::current())
    }

    /// Runs `work` on this stream, from another thread.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        self.0.executes(work)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpu_backends::GPU_BACKENDS;
    use super::*;

    #[test]
    fn an_interface_that_was_not_built_in_is_refused_by_name_with_what_there_is() {
        for backend in GPU_BACKENDS.into_iter().filter(|backend| find_devices(backend).is_none()) {
            let message = open(Some((backend, 0))).unwrap_err().to_string();
            assert!(message.contains(&format!("`--features {backend}`")) && message.contains("cpu"), "{message}");
        }
    }
}
