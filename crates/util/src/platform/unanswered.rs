//! Questions that only Linux answers. [`LACKS`] describes them.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Answers that this system lacks, as a list in words; empty if it has all.
pub const LACKS: &str = if cfg!(windows) {
    "memory limits of containers and processes, the most memory of this process, free space on disks, the cores to which a \
     process is pinned, the CPU time of a thread, traffic of disks and network"
} else {
    "memory limits of containers, the cores to which a process is pinned, the CPU time of a thread, traffic of disks and network"
};

/// Returns `None`: only Linux limits the memory of a container in a way that its processes see.
pub(crate) fn container_limit() -> Option<u128> {
    None
}

/// Returns `None`: the CPU time of a thread is not determined.
pub(crate) fn own_thread() -> Option<PathBuf> {
    None
}

/// Returns `None`.
pub(crate) fn thread_cpu_time(_: &Path) -> Option<Duration> {
    None
}

/// Returns `None`: the number of threads is not determined.
pub fn own_threads() -> Option<u64> {
    None
}

/// Returns `None`: only Linux has such a descriptor. Who waits for the end of a process looks at its connection in between.
#[cfg(unix)]
pub fn end_of_process(_: u32) -> Option<std::os::fd::OwnedFd> {
    None
}

/// Returns `None`: macOS pins no process to cores.
pub fn allowed_cores(_: u32) -> Option<usize> {
    None
}

/// Returns no disks: their traffic is not measured.
pub fn disk_traffic() -> Vec<(String, [u64; 2])> {
    Vec::new()
}

/// Returns `None`: the traffic of the network is not measured.
pub fn network_traffic() -> Option<[u64; 2]> {
    None
}
