//! Load of the machine, read from `/proc`, under the client's names. Values that cannot be read are left out.

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Time between two samples; the client's default.
const PERIOD: Duration = Duration::from_secs(15);
/// Unit of times in `/proc` on every Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// Unit of `/proc/diskstats` in bytes, for every device.
const SECTOR: f64 = 512.0;
const MIB: f64 = 1_048_576.0;
const KIB_PER_MIB: f64 = 1024.0;

/// A thread that samples at once and then every 15 seconds.
#[derive(Debug)]
pub(super) struct SystemSampler {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl SystemSampler {
    /// Passes every sample to `log`, until `log` fails.
    pub(super) fn start(log: impl Fn(&[(String, f64)]) -> Result<()> + Send + 'static) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            let mut load = Load::default();
            loop {
                if let Err(error) = log(&load.sample()) {
                    return tracing::warn!("W&B: no more system metrics: {error:#}");
                }
                // The channel also ends when the tracker is dropped.
                if stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        Ok(Self { stop, thread: thread::Builder::new().name("wandb-system".into()).spawn(run)? })
    }

    /// Stops the thread after its current sample.
    pub(super) fn stop(self) {
        drop(self.stop);
        // The thread itself never panics, so its result is ignored.
        let _ = self.thread.join();
    }
}

/// State that samples are compared with: process time at the latest sample, and counters at the first.
#[derive(Debug, Default)]
struct Load {
    cpu: Option<(Instant, f64)>,
    first: BTreeMap<String, f64>,
}

impl Load {
    fn sample(&mut self) -> Vec<(String, f64)> {
        let mut values = Vec::new();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        values.extend(self.cpu(&read("/proc/self/stat")).map(|percent| ("cpu".to_owned(), percent)));
        values.extend(memory(&read("/proc/meminfo"), &read("/proc/self/status")));
        let counters = disks(&read("/proc/diskstats")).into_iter().chain(network(&read("/proc/net/dev")));
        values.extend(counters.map(|(name, value)| {
            let first = *self.first.entry(name.clone()).or_insert(value);
            (name, value - first)
        }));
        values
    }

    /// Returns the share of all cores that this process used since the last sample, in percent.
    fn cpu(&mut self, stat: &str) -> Option<f64> {
        // The program's name is in parentheses and can contain any character.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let [user, system] = [fields.get(11)?, fields.get(12)?].map(|ticks| ticks.parse::<f64>().unwrap_or(0.0));
        let (now, seconds) = (Instant::now(), (user + system) / TICKS_PER_SECOND);
        let (then, earlier) = self.cpu.replace((now, seconds))?;
        let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        Some(100.0 * (seconds - earlier) / (now - then).as_secs_f64() / cores)
    }
}

fn memory(meminfo: &str, status: &str) -> Vec<(String, f64)> {
    let [total, available] = ["MemTotal:", "MemAvailable:"].map(|name| field(meminfo, name));
    let [resident, threads] = ["VmRSS:", "Threads:"].map(|name| field(status, name));
    let share = |part: Option<f64>| Some(100.0 * part? / total?);
    let values = [
        ("memory_percent", share(available).map(|free| 100.0 - free)),
        ("proc.memory.availableMB", available.map(|kib| kib / KIB_PER_MIB)),
        ("proc.memory.rssMB", resident.map(|kib| kib / KIB_PER_MIB)),
        ("proc.memory.percent", share(resident)),
        ("proc.cpu.threads", threads),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the MiB read from and written to every used disk; partitions and devices in memory are left out.
fn disks(diskstats: &str) -> Vec<(String, f64)> {
    let disk = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [name, read, written] = [fields.get(2)?, fields.get(5)?, fields.get(9)?];
        let [read, written] = [read, written].map(|sectors| sectors.parse::<f64>().unwrap_or(0.0) * SECTOR / MIB);
        let is_disk = !["loop", "ram", "zram", "dm-"].iter().any(|other| name.starts_with(other)) && !is_partition(name);
        (is_disk && read + written > 0.0).then(|| [(format!("disk.{name}.in"), read), (format!("disk.{name}.out"), written)])
    };
    diskstats.lines().filter_map(disk).flatten().collect()
}

fn is_partition(name: &str) -> bool {
    fs::exists(format!("/sys/class/block/{name}/partition")).unwrap_or(false)
}

/// Returns the bytes sent and received over all interfaces.
fn network(dev: &str) -> Vec<(String, f64)> {
    let (mut received, mut sent) = (0.0, 0.0);
    for (_, counters) in dev.lines().filter_map(|line| line.split_once(':')) {
        let mut counters = counters.split_whitespace().map(|count| count.parse::<f64>().unwrap_or(0.0));
        received += counters.next().unwrap_or(0.0);
        sent += counters.nth(7).unwrap_or(0.0);
    }
    vec![("network.sent".to_owned(), sent), ("network.recv".to_owned(), received)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_proc_have_the_clients_units() {
        let memory = memory("MemTotal:  4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n", "VmRSS:\t 512 kB\nThreads:\t3\n");
        let values: Vec<f64> = memory.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [75.0, 1.0, 0.5, 12.5, 3.0]);
        let disks = disks(" 7 0 loop0 1 0 8 0 1 0 8 0\n 254 0 vdx 30 60 4096 16 12 67 2048 19 0\n 254 1 vdy 0 0 0 0 0 0 0 0 0\n");
        assert_eq!(disks, [("disk.vdx.in".to_owned(), 2.0), ("disk.vdx.out".to_owned(), 1.0)]);
        let network = network("Inter-| x\n lo: 10 1 0 0 0 0 0 0 20 1 0\neth0: 1 0 0 0 0 0 0 0 2 0\n");
        assert_eq!(network, [("network.sent".to_owned(), 22.0), ("network.recv".to_owned(), 11.0)]);
    }

    #[test]
    fn work_shows_in_the_cpu_share() {
        let stat = |ticks: u64| format!("1 (a) b) R {} {ticks} 0 1", ["0"; 10].join(" "));
        let mut load = Load::default();
        assert_eq!(load.cpu(&stat(100)), None);
        thread::sleep(Duration::from_millis(2));
        assert!(load.cpu(&stat(101)).unwrap() > 0.0);
        assert_eq!(load.cpu(&stat(101)), Some(0.0));
    }
}
