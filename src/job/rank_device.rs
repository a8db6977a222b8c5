//! Assigns the GPUs of a machine to its ranks.

use std::collections::BTreeSet;
use std::env;

use burnish_config::schema::{Device, Interface};
use burnish_distributed::Ranks;
use burnish_util::platform::host_name;

/// Returns the device of this rank. `cuda` is the first GPU for the first rank of a machine, the second for the next, and so on;
/// the same for other interfaces. If the launcher shows each process a different GPU (`srun --gpus-per-task=1`), each takes the
/// first GPU that it sees. Collective.
pub(crate) fn rank_device(device: Device, ranks: &Ranks) -> Device {
    let Device::Gpu(interface, first) = device else { return device };
    let visible = restrictions(interface).iter().find_map(|name| env::var(name).ok()).unwrap_or_default();
    let devices = ranks.gather((host_name(), visible));
    // Slurm may give the same number to the one GPU that each process sees.
    let sees_one = devices[ranks.rank()].1.split(',').filter(|gpu| !gpu.is_empty()).count() == 1;
    let has_own = sees_one || devices.iter().collect::<BTreeSet<_>>().len() == ranks.size();
    Device::Gpu(interface, if has_own { first } else { first + ranks.group().local().0 })
}

/// Returns the variables by which a launcher shows a process only some GPUs.
fn restrictions(interface: Interface) -> &'static [&'static str] {
    match interface {
        Interface::Cuda => &["CUDA_VISIBLE_DEVICES"],
        Interface::Rocm => &["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"],
        Interface::Metal | Interface::Vulkan | Interface::Wgpu => &[],
    }
}
