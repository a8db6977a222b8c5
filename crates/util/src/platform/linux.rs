//! Linux: `/proc`, cgroups and `pidfd`.

use std::ffi::c_int;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Answers that this system lacks, as a list in words; empty if it has all.
pub const LACKS: &str = "";

/// Unit of times in `/proc` on every Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// Unit of `/proc/diskstats` in bytes, for every device.
const SECTOR: u64 = 512;

/// Returns the memory of the machine in bytes.
pub fn memory_total() -> Option<u64> {
    bytes(&read("/proc/meminfo"), "MemTotal")
}

/// Returns the swap of the machine in bytes.
pub(crate) fn swap_total() -> Option<u64> {
    bytes(&read("/proc/meminfo"), "SwapTotal")
}

/// Returns the memory that programs can still take without swapping, in bytes.
pub fn memory_available() -> Option<u64> {
    bytes(&read("/proc/meminfo"), "MemAvailable")
}

/// Returns the memory limit of the container in bytes.
pub(crate) fn container_limit() -> Option<u128> {
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    files.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// Returns the memory that this process has now, in bytes.
pub fn own_memory() -> Option<u64> {
    bytes(&read("/proc/self/status"), "VmRSS")
}

/// Returns the most memory that this process had so far, in bytes.
pub fn peak_memory() -> Option<u64> {
    bytes(&read("/proc/self/status"), "VmHWM")
}

/// Returns the number of threads of this process.
pub fn own_threads() -> Option<u64> {
    field(&read("/proc/self/status"), "Threads")?.parse().ok()
}

/// Returns the CPU time of this process so far, of all threads.
pub fn own_cpu_time() -> Option<Duration> {
    cpu_time(&read("/proc/self/stat"))
}

/// Returns a name of the calling thread for [`thread_cpu_time`].
pub(crate) fn own_thread() -> Option<PathBuf> {
    fs::read_link("/proc/thread-self").ok().map(|thread| Path::new("/proc").join(thread).join("stat"))
}

/// Returns the CPU time of a thread of this process so far; `None` after its end.
pub(crate) fn thread_cpu_time(thread: &Path) -> Option<Duration> {
    cpu_time(&fs::read_to_string(thread).ok()?)
}

/// Returns a unique name: the host's boot id, the process id, and the start time in clock ticks since boot. `None` for a process
/// that has ended, including a zombie.
pub fn process_name(process: u32) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = after_name(&stat)?.split_whitespace();
    let is_gone = matches!(fields.next()?, "Z" | "X");
    let start = fields.nth(18).filter(|_| !is_gone)?;
    Some(format!("{} {process} {start}", boot.trim()))
}

/// Returns true if a process has this id, even if it has ended and its exit code was not collected yet.
pub fn is_running(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Returns a descriptor that becomes readable when a process ends.
pub fn end_of_process(process: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(process.try_into().ok()?)?, PidfdFlags::empty()).ok()
}

/// Returns true if this process was started with this signal ignored; `None` if the system does not say.
pub(crate) fn is_ignored(signal: c_int) -> Option<bool> {
    let mask = u64::from_str_radix(field(&read("/proc/self/status"), "SigIgn")?, 16).ok()?;
    Some(mask >> (signal - 1) & 1 == 1)
}

/// Returns the number of cores that a process may run on.
pub fn allowed_cores(process: u32) -> Option<usize> {
    count_of_list(field(&read(&format!("/proc/{process}/status")), "Cpus_allowed_list")?)
}

/// Returns the bytes read from and written to every used disk; partitions and devices in memory are left out.
pub fn disk_traffic() -> Vec<(String, [u64; 2])> {
    disks(&read("/proc/diskstats"))
}

/// Returns the bytes received and sent over all interfaces.
pub fn network_traffic() -> Option<[u64; 2]> {
    fs::read_to_string("/proc/net/dev").ok().map(|dev| network(&dev))
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the text after `NAME:` at the start of a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns a field in bytes; `/proc` has it in KiB.
fn bytes(text: &str, name: &str) -> Option<u64> {
    Some(field(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Returns the fields of `/proc/PID/stat` after the program's name, which is in parentheses and can contain any character.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, fields)| fields.trim_start())
}

fn cpu_time(stat: &str) -> Option<Duration> {
    let fields: Vec<&str> = after_name(stat)?.split(' ').collect();
    let [user, system] = [fields.get(11)?, fields.get(12)?].map(|ticks| ticks.parse::<f64>().unwrap_or(0.0));
    Some(Duration::from_secs_f64((user + system) / TICKS_PER_SECOND))
}

/// Returns the number of cores in a list such as `0-3,8`.
fn count_of_list(list: &str) -> Option<usize> {
    let run = |run: &str| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        Some(last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.trim().split(',').map(run).sum()
}

fn disks(diskstats: &str) -> Vec<(String, [u64; 2])> {
    let disk = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, read, written] = [fields.get(2)?, fields.get(5)?, fields.get(9)?];
        let traffic = [read, written].map(|sectors| sectors.parse::<u64>().unwrap_or(0) * SECTOR);
        let is_disk = !["loop", "ram", "zram", "dm-"].iter().any(|other| name.starts_with(other)) && !is_partition(name);
        (is_disk && traffic != [0; 2]).then(|| ((*name).to_owned(), traffic))
    };
    diskstats.lines().filter_map(disk).collect()
}

fn is_partition(name: &str) -> bool {
    fs::exists(format!("/sys/class/block/{name}/partition")).unwrap_or(false)
}

fn network(dev: &str) -> [u64; 2] {
    let mut traffic = [0; 2];
    for (_, counters) in dev.lines().filter_map(|line| line.split_once(':')) {
        let mut counters = counters.split_whitespace().map(|count| count.parse::<u64>().unwrap_or(0));
        traffic[0] += counters.next().unwrap_or(0);
        traffic[1] += counters.nth(7).unwrap_or(0);
    }
    traffic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_proc_have_their_units() {
        let text = "MemTotal:  4096 kB\nMemFree: 1 kB\nThreads:\t3\n";
        assert_eq!((bytes(text, "MemTotal"), bytes(text, "Mem"), bytes(text, "Threads")), (Some(4096 << 10), None, None));
        assert_eq!(field(text, "Threads"), Some("3"));
        let stat = format!("1 (a) b) R {} 150 50 1", ["0"; 10].join(" "));
        assert_eq!(cpu_time(&stat), Some(Duration::from_secs(2)));
        let disks = disks(" 7 0 loop0 1 0 8 0 1 0 8 0\n 254 0 vdx 30 60 4096 16 12 67 2048 19 0\n 254 1 vdy 0 0 0 0 0 0 0 0 0\n");
        assert_eq!(disks, [("vdx".to_owned(), [2 << 20, 1 << 20])]);
        assert_eq!(network("Inter-| x\n lo: 10 1 0 0 0 0 0 0 20 1 0\neth0: 1 0 0 0 0 0 0 0 2 0\n"), [11, 22]);
        assert_eq!(["\t0", " 0-3,8\n", "0-1,4-5,7", "", "3-1"].map(count_of_list), [Some(1), Some(5), Some(5), None, None]);
    }
}
