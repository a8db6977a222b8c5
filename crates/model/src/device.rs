//! The device of a run, chosen at run time. Every tensor is made on a device that is passed along; nothing asks burn for its default
//! device, which in a build with an interface to GPUs is a GPU.

use anyhow::{Result, bail};
use burn::backend::DispatchDevice;
use burn::tensor::{Device, StreamId};

use super::devices::in_words;
use super::interfaces::found;

/// True if fused operations run on this device, on memory that the host reads without a transfer.
pub fn is_cpu(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Flex(_))
}

/// Returns the CPU, or the GPU of that number behind that interface, one of [`INTERFACES`](super::interfaces::INTERFACES). A GPU is
/// opened and named in the log.
///
/// # Errors
/// If the build does not have the interface, or there is no such GPU, or it cannot be opened; the message lists the devices that
/// there are.
pub fn open(gpu: Option<(&str, usize)>) -> Result<Device> {
    let Some((interface, index)) = gpu else { return Ok(Device::flex()) };
    let Some(found) = found(interface) else {
        bail!("this build has no {interface}: build with `--features {interface}`, or take another device: {}", in_words());
    };
    #[cfg(feature = "cuda")]
    if interface == "cuda"
        && let Some(missing) = super::cuda_paths::missing()
    {
        bail!("{missing}; devices: {}", in_words());
    }
    let Some(device) = found.get(index) else {
        let count = match found.len() {
            0 => format!("{interface} finds no GPU (is its driver installed, and is the GPU visible?)"),
            1 => format!("{interface} finds 1 GPU, {interface}:0"),
            count => format!("{interface} finds {count} GPUs, from {interface}:0 to {interface}:{}", count - 1),
        };
        bail!("{count}; devices: {}", in_words());
    };
    #[cfg(feature = "gpu")]
    {
        let name = format!("{interface}:{index}");
        match super::devices::describe(name.clone(), device) {
            Ok(found) => tracing::info!("device {}", found.in_words()),
            Err(why) => bail!("it cannot be opened: {why}; devices: {}", in_words()),
        }
        super::device_failure::watch(&name);
    }
    Ok(device.clone())
}

/// The order of work on a GPU that a thread has. What two threads do has no order but where one waits for the other, which takes time,
/// and cannot be recorded: a thread that works with the tensors of another takes over its order.
#[derive(Clone, Copy, Debug)]
pub struct Order(StreamId);

impl Order {
    /// The order of the calling thread, which does nothing with its tensors any more.
    pub fn of_this_thread() -> Self {
        Self(StreamId::current())
    }

    /// Does some work in this order, on another thread.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        self.0.executes(work)
    }
}

#[cfg(test)]
mod tests {
    use super::super::interfaces::INTERFACES;
    use super::*;

    #[test]
    fn an_interface_that_was_not_built_in_is_refused_by_name_with_what_there_is() {
        for interface in INTERFACES.into_iter().filter(|interface| found(interface).is_none()) {
            let message = open(Some((interface, 0))).unwrap_err().to_string();
            assert!(message.contains(&format!("`--features {interface}`")) && message.contains("cpu"), "{message}");
        }
    }
}
