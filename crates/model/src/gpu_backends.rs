//! The GPU backends: which of them are built in, and which devices they find.

use burn::tensor::{Device, FloatDType};

/// The backends, by their names in `trainer.device`, which are also the names of their cargo features.
pub const GPU_BACKENDS: [&str; 5] = ["cuda", "rocm", "metal", "vulkan", "wgpu"];

/// Lists the GPUs of a backend, including software emulations; `None` if the backend is not built in.
#[cfg(feature = "gpu")]
pub(super) fn find_devices(backend: &str) -> Option<Vec<Device>> {
    use burn::tensor::DeviceType;
    #[cfg(feature = "cuda")]
    if backend == "cuda" {
        super::cuda_paths::load_libraries();
    }
    let kind = match backend {
        #[cfg(feature = "cuda")]
        "cuda" => DeviceType::Cuda,
        #[cfg(feature = "rocm")]
        "rocm" => DeviceType::Rocm,
        #[cfg(feature = "metal")]
        "metal" => DeviceType::Metal,
        #[cfg(feature = "vulkan")]
        "vulkan" => DeviceType::Vulkan,
        #[cfg(feature = "wgpu")]
        "wgpu" => DeviceType::Wgpu,
        _ => return None,
    };
    super::kernel_cache::keep_kernels();
    // A broken driver must not hide the other devices.
    let found = super::device_failure::caught(|| Device::enumerate(kind).into_iter().collect());
    Some(found.unwrap_or_else(|why| {
        tracing::warn!("{backend}: its GPUs cannot be listed: {why}");
        vec![]
    }))
}

#[cfg(not(feature = "gpu"))]
pub(super) fn find_devices(_: &str) -> Option<Vec<Device>> {
    None
}

/// True if this device computes in bfloat16. Kernels in an unsupported dtype do not compile.
pub fn has_bfloat16(device: &Device) -> bool {
    #[cfg(feature = "gpu")]
    if device.identity().is_some_and(|identity| emulates_bfloat16(&identity.fingerprint)) {
        return false;
    }
    device.supports_dtype(FloatDType::BF16)
}

/// True for an NVIDIA GPU without bfloat16 instructions: compute capability below 8.0, such as the T4. CubeCL reports bfloat16 as
/// supported there.
#[cfg(feature = "gpu")]
fn emulates_bfloat16(fingerprint: &str) -> bool {
    let version = fingerprint.strip_prefix("ptx_sm").and_then(|version| version.parse::<u32>().ok());
    version.is_some_and(|version| version < 80)
}

/// Returns a device for tests of kernels: the first that WGSL reaches, a GPU or an emulation. Prints a line if neither exists.
#[cfg(feature = "wgpu")]
#[expect(clippy::print_stdout, reason = "tests may print")]
pub fn any_gpu() -> Option<Device> {
    let device = Device::enumerate(burn::tensor::DeviceType::Wgpu).into_iter().next();
    if device.is_none() {
        println!("skipped: there is no GPU, and no emulation of one");
    }
    device
}

#[cfg(all(test, feature = "gpu"))]
mod tests {
    use super::*;

    #[test]
    fn old_gpus_have_no_bfloat16() {
        assert!(emulates_bfloat16("ptx_sm75"));
        assert!(!["ptx_sm80", "ptx_sm90", "ptx_sm120", "hip-kernel_gfx1151"].into_iter().any(emulates_bfloat16));
    }
}
