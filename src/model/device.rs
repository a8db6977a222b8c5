//! The device of a run, chosen at run time.

use anyhow::{Result, bail};
use burn::tensor::Device;

/// The CPU, or the CUDA device of that index.
///
/// # Errors
/// CUDA in a build without it, or without such a GPU.
pub fn open(cuda: Option<usize>) -> Result<Device> {
    let Some(index) = cuda else {
        // Some of burn's own code asks for the default device; without this it would find a GPU where there is one.
        // SAFETY: called at start-up, before any other thread exists that could read the environment.
        unsafe { std::env::set_var("BURN_DEVICE", "flex") };
        return Ok(Device::flex());
    };
    #[cfg(not(feature = "cuda"))]
    bail!("trainer.device=cuda:{index}: this build has no CUDA; build with `--features cuda`, or set trainer.device=cpu");
    #[cfg(feature = "cuda")]
    {
        let count = Device::enumerate(burn::tensor::DeviceType::Cuda).into_iter().count();
        if index >= count {
            let found =
                if count == 0 { "no CUDA GPU was found".to_owned() } else { format!("there are {count} CUDA GPUs, from 0") };
            bail!(
                "trainer.device=cuda:{index}: {found} (is libcuda installed and is the GPU visible?); or set trainer.device=cpu"
            );
        }
        Ok(Device::cuda(index))
    }
}
