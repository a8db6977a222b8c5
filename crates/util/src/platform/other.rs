//! macOS, and every system but Linux: what crate `sysinfo` finds. On macOS it asks `sysctl`, `libproc` and Mach.

use std::time::Duration;

use sysinfo::{MemoryRefreshKind, Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};

/// Returns the memory of the machine in bytes.
pub(super) fn memory_total() -> Option<u64> {
    known(memory().total_memory())
}

/// Returns the swap of the machine in bytes.
pub(crate) fn swap_total() -> Option<u64> {
    Some(memory().total_swap())
}

/// Returns the memory that programs can still take without swapping, in bytes.
pub(super) fn memory_available() -> Option<u64> {
    known(memory().available_memory())
}

/// Returns the memory that this process has now, in bytes.
pub(super) fn own_memory() -> Option<u64> {
    of_process(std::process::id(), ProcessRefreshKind::nothing().with_memory(), |process| known(process.memory()))
}

/// Returns the CPU time of this process so far, of all threads.
pub(super) fn own_cpu_time() -> Option<Duration> {
    of_process(std::process::id(), ProcessRefreshKind::nothing().with_cpu(), |process| {
        Some(Duration::from_millis(process.accumulated_cpu_time()))
    })
}

/// Returns a unique name: the host, the process id, and the start time in seconds since 1970. `None` for a process that has ended,
/// including a zombie.
pub(super) fn process_name(process: u32) -> Option<String> {
    let start = of_process(process, ProcessRefreshKind::nothing(), |found| {
        let is_gone = matches!(found.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
        known(found.start_time()).filter(|_| !is_gone)
    })?;
    Some(format!("{} {process} {start}", super::host_name().replace(' ', "-")))
}

/// Returns true if a process has this id, even if it has ended and its exit code was not collected yet.
pub(super) fn is_running(process: u32) -> bool {
    of_process(process, ProcessRefreshKind::nothing(), |_| Some(())).is_some()
}

fn memory() -> System {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::everything());
    system
}

fn of_process<T>(process: u32, refresh: ProcessRefreshKind, answer: impl FnOnce(&Process) -> Option<T>) -> Option<T> {
    let process = Pid::from_u32(process);
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[process]), true, refresh);
    answer(system.process(process)?)
}

/// Returns `None` for 0, which `sysinfo` reports for an unknown value.
fn known(value: u64) -> Option<u64> {
    Some(value).filter(|value| *value > 0)
}
