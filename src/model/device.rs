//! The device of a run, chosen at run time. Every tensor is made on a device that is passed along; nothing asks burn for its default
//! device, which in a build with CUDA is a GPU.

use anyhow::{Result, bail};
use burn::backend::DispatchDevice;
use burn::tensor::Device;

/// True if fused operations run on this device, on memory that the host reads without a transfer.
pub fn is_cpu(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Flex(_))
}

/// Returns the CPU, or the CUDA device of that index.
///
/// # Errors
/// If CUDA is asked for in a build without it, or there is no such GPU.
pub fn open(cuda: Option<usize>) -> Result<Device> {
    let Some(index) = cuda else { return Ok(Device::flex()) };
    #[cfg(not(feature = "cuda"))]
    bail!("trainer.device=cuda:{index}: this build has no CUDA; build with `--features cuda`, or set trainer.device=cpu");
    #[cfg(feature = "cuda")]
    {
        keep_kernels();
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

/// Keeps compiled kernels and the choices of autotuning in the user's cache folder, for later runs. A cubecl.toml or burn.toml in
/// the working folder or above it takes precedence. Without either, CubeCL would keep no kernels, and would keep its choices
/// beside the working folder's Cargo.toml.
#[cfg(feature = "cuda")]
fn keep_kernels() {
    use burn::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig, cache::CacheConfig};
    let sections = CubeClRuntimeConfig::section_file_names().iter().map(|(file, _)| file);
    let files: Vec<&str> = CubeClRuntimeConfig::file_names().iter().chain(sections).copied().collect();
    let there = |folder: &std::path::Path| files.iter().any(|file| folder.join(file).is_file());
    if std::env::current_dir().is_ok_and(|folder| folder.ancestors().any(there)) {
        return;
    }
    let mut config = CubeClRuntimeConfig::default().override_from_env();
    config.environment.path = CacheConfig::Global;
    config.compilation.cache = true;
    CubeClRuntimeConfig::try_set(config);
}
