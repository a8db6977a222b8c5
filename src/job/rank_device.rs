//! The device of each of several processes: those of one machine take its GPUs in turn.

use std::collections::BTreeSet;
use std::env;

use burnish_config::schema::{Device, Interface};
use burnish_distributed::Ranks;

/// The device of this rank where the settings name `device`: `cuda` is the first GPU of the first process of a machine, the next one of
/// the next, and so with the other interfaces. Where the launcher shows each process another GPU (`srun --gpus-per-task=1`), each takes
/// the first that it sees. Collective.
pub fn rank_device(device: Device, ranks: &Ranks) -> Device {
    let Device::Gpu(interface, first) = device else { return device };
    let visible = restrictions(interface).iter().find_map(|name| env::var(name).ok()).unwrap_or_default();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let seen = ranks.gather((host, visible));
    // Slurm may call the one GPU that each process sees by the same number.
    let sees_one = seen[ranks.rank()].1.split(',').filter(|gpu| !gpu.is_empty()).count() == 1;
    let has_own = sees_one || seen.iter().collect::<BTreeSet<_>>().len() == ranks.size();
    Device::Gpu(interface, if has_own { first } else { first + ranks.group().local().0 })
}

/// The variables by which a launcher shows a process some of the GPUs only.
fn restrictions(interface: Interface) -> &'static [&'static str] {
    match interface {
        Interface::Cuda => &["CUDA_VISIBLE_DEVICES"],
        Interface::Rocm => &["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"],
        Interface::Metal | Interface::Vulkan | Interface::Wgpu => &[],
    }
}
