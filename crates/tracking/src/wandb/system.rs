//! Load of the machine under the client's names. Values that the system does not report are left out; `trainer --version
//! --verbose` lists them.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Result;

use burnish_util::platform;

/// Time between two samples; the client's default.
const PERIOD: Duration = Duration::from_secs(15);
const MIB: f64 = 1_048_576.0;

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
        values.extend(platform::own_cpu_time().and_then(|time| self.cpu(time)).map(|percent| ("cpu".to_owned(), percent)));
        let total = [platform::memory_total(), platform::memory_available(), platform::own_memory()];
        values.extend(memory(total, platform::own_threads()));
        let counters =
            disks(platform::disk_traffic()).into_iter().chain(platform::network_traffic().into_iter().flat_map(network));
        values.extend(counters.map(|(name, value)| {
            let first = *self.first.entry(name.clone()).or_insert(value);
            (name, value - first)
        }));
        values
    }

    /// Returns the share of all cores that this process used since the last sample, in percent.
    fn cpu(&mut self, time: Duration) -> Option<f64> {
        let (now, seconds) = (Instant::now(), time.as_secs_f64());
        let (then, earlier) = self.cpu.replace((now, seconds))?;
        let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        Some(100.0 * (seconds - earlier) / (now - then).as_secs_f64() / cores)
    }
}

/// Names the memory of the machine, the available memory, the memory of this process, and the number of its threads.
fn memory([total, available, own]: [Option<u64>; 3], threads: Option<u64>) -> Vec<(String, f64)> {
    let share = |part: Option<u64>| Some(100.0 * part? as f64 / total? as f64);
    let mib = |bytes: u64| bytes as f64 / MIB;
    let values = [
        ("memory_percent", share(available).map(|free| 100.0 - free)),
        ("proc.memory.availableMB", available.map(mib)),
        ("proc.memory.rssMB", own.map(mib)),
        ("proc.memory.percent", share(own)),
        ("proc.cpu.threads", threads.map(|count| count as f64)),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Names the bytes read from and written to every disk.
fn disks(traffic: Vec<(String, [u64; 2])>) -> Vec<(String, f64)> {
    let named = |(disk, [read, written]): (String, [u64; 2])| {
        [(format!("disk.{disk}.in"), read as f64 / MIB), (format!("disk.{disk}.out"), written as f64 / MIB)]
    };
    traffic.into_iter().flat_map(named).collect()
}

/// Names the bytes received and sent.
fn network([received, sent]: [u64; 2]) -> [(String, f64); 2] {
    [("network.sent".to_owned(), sent as f64), ("network.recv".to_owned(), received as f64)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_the_system_have_the_clients_units() {
        let memory = memory([4 << 20, 1 << 20, 1 << 19].map(Some), Some(3));
        let values: Vec<f64> = memory.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [75.0, 1.0, 0.5, 12.5, 3.0]);
        let disks = disks(vec![("vdx".to_owned(), [2 << 20, 1 << 20])]);
        assert_eq!(disks, [("disk.vdx.in".to_owned(), 2.0), ("disk.vdx.out".to_owned(), 1.0)]);
        assert_eq!(network([11, 22]), [("network.sent".to_owned(), 22.0), ("network.recv".to_owned(), 11.0)]);
    }

    #[test]
    fn work_shows_in_the_cpu_share() {
        let mut load = Load::default();
        assert_eq!(load.cpu(Duration::from_secs(1)), None);
        thread::sleep(Duration::from_millis(2));
        assert!(load.cpu(Duration::from_millis(1010)).unwrap() > 0.0);
        assert_eq!(load.cpu(Duration::from_millis(1010)), Some(0.0));
    }
}
