//! The watch over a target. A file holds the current input; an input that takes too long or fills the memory ends the process,
//! with the name of that file.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of one input, on the clock and in processor time. Builds of other people may run at the same time, and a process
/// of low priority may then wait for minutes.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Maximum time of one input on the clock alone, for an input that waits.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Maximum memory of this process in bytes, with all its targets at once.
pub(crate) const MAX_MEMORY: u64 = 6 << 30;

/// The variable of a process that has one target alone: the maximum of its memory, in bytes.
pub(crate) const ALONE: &str = "BURNISH_FUZZ_ALONE";

/// The time at which an input began, on the clock and in the processor time of all targets.
struct InputStart {
    clock: Instant,
    processor: Duration,
}

impl InputStart {
    fn now() -> Self {
        Self { clock: Instant::now(), processor: processor_time() }
    }

    fn is_long_ago(&self) -> bool {
        let took = self.clock.elapsed();
        took > LONGEST_WAIT || took > LONGEST && processor_time().saturating_sub(self.processor) > LONGEST
    }
}

/// The processor time of this process; none without `/proc`.
fn processor_time() -> Duration {
    const TICKS_PER_SECOND: u64 = 100;
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    Duration::from_millis(fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 1000 / TICKS_PER_SECOND)
}

pub(crate) struct Watch {
    pub target: &'static str,
    path: PathBuf,
    file: Mutex<File>,
    since: Arc<Mutex<InputStart>>,
}

impl Watch {
    pub(crate) fn start(target: &'static str) -> Self {
        let path = std::env::temp_dir().join(format!("burnish-fuzz-{target}-{}", std::process::id()));
        let since = Arc::new(Mutex::new(InputStart::now()));
        let (own, alive, max) = (path.clone(), Arc::downgrade(&since), of_alone().unwrap_or(MAX_MEMORY));
        thread::spawn(move || {
            while let Some(since) = alive.upgrade() {
                let is_long_ago = since.lock().unwrap_or_else(PoisonError::into_inner).is_long_ago();
                drop(since);
                let fault = match memory() {
                    memory if memory > max => format!("the process has {} MiB", memory >> 20),
                    _ if is_long_ago => format!("an input takes longer than {} s", LONGEST.as_secs()),
                    _ => {
                        thread::sleep(Duration::from_millis(50));
                        continue;
                    }
                };
                // Bypasses the capture of the test's output, which an abort would lose.
                _ = writeln!(std::io::stderr(), "fuzzing {target}: {fault}; the input is in {}", own.display());
                std::process::abort();
            }
        });
        Self { target, file: Mutex::new(File::create(&path).unwrap()), path, since }
    }

    /// Records the next input.
    pub(crate) fn input(&self, bytes: &[u8]) {
        let mut file = self.file.lock().unwrap();
        file.rewind().unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        *self.since.lock().unwrap() = InputStart::now();
    }
}

impl Watch {
    /// Checks the highest memory of a process with one target.
    pub(crate) fn check_peak(&self) {
        let Some(max) = of_alone() else { return };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim_end_matches("kB").trim().parse::<u64>().ok());
        let peak = peak.unwrap_or_default() << 10;
        assert!(peak <= max, "the process has taken {} MiB, more than {} MiB", peak >> 20, max >> 20);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

/// The maximum of the memory, if this process has one target.
fn of_alone() -> Option<u64> {
    std::env::var(ALONE).ok().map(|max| max.parse().expect("a number of bytes"))
}

/// Resident memory of this process in bytes; 0 without `/proc`.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
