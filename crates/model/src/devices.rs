//! What there is to compute on: the devices of this machine that this build reaches, and the interfaces that it lacks.

use burn::tensor::{Device, FloatDType};

use super::interfaces::{INTERFACES, found, has_bfloat16};
use burnish_util::machine::{amount, memory};

/// An entry of the list.
pub enum Listed {
    Device(Found),
    /// A GPU that cannot be opened, by its name in `trainer.device`, and the reason.
    Unopened {
        name: String,
        why: String,
    },
    /// An interface that finds no GPU here.
    Nothing(&'static str),
    /// An interface that this build lacks; its cargo feature is called the same.
    NotBuiltIn(&'static str),
}

/// A device that can be computed on.
pub struct Found {
    /// Its name in `trainer.device`.
    pub name: String,
    /// Its own name.
    pub adapter: String,
    pub float32: bool,
    pub bfloat16: bool,
    pub float16: bool,
    /// The bytes of its memory, where they are known.
    pub memory: Option<u64>,
    /// True for a driver that has the CPU stand for a GPU, as Mesa's llvmpipe.
    pub software: bool,
}

/// Returns the CPU, and what there is of each interface. GPUs are opened for it.
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

/// Opens a GPU and asks it what it is.
///
/// # Errors
/// If it cannot be opened: what its driver says.
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
            // Whatever is no card is software.
            software: identity.as_ref().is_some_and(|identity| identity.physical.is_none()),
            adapter: identity.map_or_else(|| "a GPU without a name".to_owned(), |identity| identity.name),
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
    Err("this build has no interface to GPUs".to_owned())
}

impl Found {
    /// The device in a few words.
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
