//! The devices of this machine that this build can use, and the GPU backends that it lacks.

use burn::tensor::{Device, FloatDType};

use super::interfaces::{INTERFACES, found, has_bfloat16};
use burnish_util::machine::{amount, memory};

/// An entry of the list of devices.
pub enum Listed {
    Device(Found),
    /// A GPU that cannot be opened: its name in `trainer.device`, and the reason.
    Unopened {
        name: String,
        why: String,
    },
    /// A backend that finds no GPU here.
    Nothing(&'static str),
    /// A backend that is not built in; its cargo feature has the same name.
    NotBuiltIn(&'static str),
}

/// A usable device.
pub struct Found {
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
pub fn list() -> Vec<Listed> {
    let cpu = Device::flex();
    let cpu = Found {
        name: "cpu".to_owned(),
        adapter: "the processor".to_owned(),
        float32: cpu.supports_dtype(FloatDType::F32),
        bfloat16: has_bfloat16(&cpu),
        float16: cpu.supports_dtype(FloatDType::F16),
        memory: memory().and_then(|bytes| u64::try_from(bytes).ok()),
        software: false,
    };
    [Listed::Device(cpu)].into_iter().chain(INTERFACES.into_iter().flat_map(of_interface)).collect()
}

fn of_interface(interface: &'static str) -> Vec<Listed> {
    let Some(devices) = found(interface) else { return vec![Listed::NotBuiltIn(interface)] };
    if devices.is_empty() {
        return vec![Listed::Nothing(interface)];
    }
    let entry = |(index, device): (usize, &Device)| {
        let name = format!("{interface}:{index}");
        match describe(name.clone(), device) {
            Ok(found) => Listed::Device(found),
            Err(why) => Listed::Unopened { name, why },
        }
    };
    devices.iter().enumerate().map(entry).collect()
}

/// Opens a GPU and reads its properties.
///
/// # Errors
/// If the GPU cannot be opened: the driver's message.
#[cfg(feature = "gpu")]
pub(super) fn describe(name: String, device: &Device) -> Result<Found, String> {
    use burn::backend::DispatchDevice;
    let asked = || {
        let identity = device.identity();
        let memory = match device.as_dispatch() {
            DispatchDevice::Cube(cube) => cube.client().properties().memory.max_memory(),
            _ => None,
        };
        Found {
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
    super::device_failure::caught(asked)
}

#[cfg(not(feature = "gpu"))]
fn describe(_: String, _: &Device) -> Result<Found, String> {
    Err("this build has no GPU backend".to_owned())
}

impl Found {
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
    let (mut words, mut lacking) = (Vec::new(), Vec::new());
    for entry in list() {
        match entry {
            Listed::Device(found) if found.name == "cpu" => words.push(found.name),
            Listed::Device(found) => words.push(found.in_words()),
            Listed::Unopened { name, .. } => words.push(format!("{name} (cannot be opened)")),
            Listed::Nothing(interface) => words.push(format!("no GPU by {interface}")),
            Listed::NotBuiltIn(interface) => lacking.push(interface),
        }
    }
    let lacking = if lacking.is_empty() { String::new() } else { format!("; not built in: {}", lacking.join(", ")) };
    format!("{}{lacking}", words.join(", "))
}
