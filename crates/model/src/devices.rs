//! The devices of this machine that this build can use, and the GPU backends that it lacks.

use burn::tensor::{Device, FloatDType};

use super::gpu_backends::{GPU_BACKENDS, find_devices, has_bfloat16};
use burnish_util::machine::{amount, memory};

/// An entry of the list of devices.
pub enum DeviceInfo {
    Device(FoundDevice),
    /// A GPU that cannot be opened: its name in `trainer.device`, and the reason.
    Unopened {
        name: String,
        why: String,
    },
    /// A backend that finds no GPU here.
    NoGpu(&'static str),
    /// A backend that is not built in; its cargo feature has the same name.
    NotBuiltIn(&'static str),
}

/// A usable device.
pub struct FoundDevice {
    /// Its name in `trainer.device`.
    pub name: String,
    /// The name that the driver reports.
    pub adapter: String,
    pub float32: bool,
    pub bfloat16: bool,
    pub float16: bool,
    /// Its memory in bytes, if known.
    pub memory: Option<u64>,
    /// True for a driver that emulates a GPU on the CPU, such as Mesa's llvmpipe.
    pub software: bool,
}

/// Returns the CPU and the devices of each backend. GPUs are opened to describe them.
pub fn list() -> Vec<DeviceInfo> {
    let cpu = Device::flex();
    let cpu = FoundDevice {
        name: "cpu".to_owned(),
        adapter: "the processor".to_owned(),
        float32: cpu.supports_dtype(FloatDType::F32),
        bfloat16: has_bfloat16(&cpu),
        float16: cpu.supports_dtype(FloatDType::F16),
        memory: memory().and_then(|bytes| u64::try_from(bytes).ok()),
        software: false,
    };
    [DeviceInfo::Device(cpu)].into_iter().chain(GPU_BACKENDS.into_iter().flat_map(of_backend)).collect()
}

fn of_backend(backend: &'static str) -> Vec<DeviceInfo> {
    let Some(devices) = find_devices(backend) else { return vec![DeviceInfo::NotBuiltIn(backend)] };
    if devices.is_empty() {
        return vec![DeviceInfo::NoGpu(backend)];
    }
    let entry = |(index, device): (usize, &Device)| {
        let name = format!("{backend}:{index}");
        match describe(name.clone(), device) {
            Ok(found) => DeviceInfo::Device(found),
            Err(why) => DeviceInfo::Unopened { name, why },
        }
    };
    devices.iter().enumerate().map(entry).collect()
}

/// Opens a GPU and reads its properties.
///
/// # Errors
/// If the GPU cannot be opened: the driver's message.
#[cfg(feature = "gpu")]
pub(super) fn describe(name: String, device: &Device) -> Result<FoundDevice, String> {
    use burn::backend::DispatchDevice;
    let list = || {
        let identity = device.identity();
        let memory = match device.as_dispatch() {
            DispatchDevice::Cube(cube) => cube.client().properties().memory.max_memory(),
            _ => None,
        };
        FoundDevice {
            name,
            // A device without a physical card is software.
            software: identity.as_ref().is_some_and(|identity| identity.physical.is_none()),
            adapter: identity.map_or_else(|| "an unnamed GPU".to_owned(), |identity| identity.name),
            float32: device.supports_dtype(FloatDType::F32),
            bfloat16: has_bfloat16(device),
            float16: device.supports_dtype(FloatDType::F16),
            memory,
        }
    };
    super::device_failure::caught(list)
}

#[cfg(not(feature = "gpu"))]
fn describe(_: String, _: &Device) -> Result<FoundDevice, String> {
    Err("this build has no GPU backend".to_owned())
}

impl FoundDevice {
    /// Describes the device in a few words.
    pub fn in_words(&self) -> String {
        let memory = self.memory.map(|bytes| amount(u128::from(bytes)));
        let software = self.software.then(|| "software, not a GPU".to_owned());
        let words: Vec<String> = [self.adapter.clone()].into_iter().chain(memory).chain(software).collect();
        format!("{} ({})", self.name, words.join(", "))
    }
}

/// Returns the whole list in one line, for messages.
pub fn in_words() -> String {
    in_words_of(&list())
}

/// Returns a list in one line.
pub fn in_words_of(entries: &[DeviceInfo]) -> String {
    let (mut words, mut lacking) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            DeviceInfo::Device(found) if found.name == "cpu" => words.push(found.name.clone()),
            DeviceInfo::Device(found) => words.push(found.in_words()),
            DeviceInfo::Unopened { name, .. } => words.push(format!("{name} (cannot be opened)")),
            DeviceInfo::NoGpu(backend) => words.push(format!("{backend} finds no GPU")),
            DeviceInfo::NotBuiltIn(backend) => lacking.push(*backend),
        }
    }
    let lacking = if lacking.is_empty() { String::new() } else { format!("; not built in: {}", lacking.join(", ")) };
    format!("{}{lacking}", words.join(", "))
}
