//! What messages call the files of users and the settings of their processes, which differ between rewards and agents.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// The words for exhausted memory in messages of Python, NumPy, torch and C++.
const OUT_OF_MEMORY: [&str; 3] = ["MemoryError", "allocate memory", "bad_alloc"];

/// The names of files and settings.
#[derive(Debug)]
pub struct Words {
    /// One file, with its article.
    pub file: &'static str,
    pub files: &'static str,
    /// The setting with the interpreter.
    pub python: &'static str,
    /// The setting with the environment variables that are passed on.
    pub pass_env: &'static str,
    /// The setting with the limit on memory.
    pub memory_limit_mb: &'static str,
    /// The setting with the limit on processor time.
    pub cpu_limit: &'static str,
}

impl Words {
    /// The end of a process in words, after its name. `cpu` is its limit on processor time in seconds.
    pub fn ended(&self, status: ExitStatus, cpu: u64) -> String {
        match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit status {code}"),
            (_, Some(signal)) if signal == Signal::XCPU.as_raw() => format!("used more than {cpu} s of CPU ({})", self.cpu_limit),
            (_, Some(signal)) if signal == Signal::KILL.as_raw() => {
                "was killed by signal 9, which is what the system does when it runs out of memory".to_owned()
            }
            (_, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
        }
    }

    /// Advice for an error that tells of exhausted memory; empty for others. `limit` is that of each process in MiB.
    pub fn memory_hint(&self, error: &str, limit: Option<u64>) -> String {
        let limit = limit.filter(|_| OUT_OF_MEMORY.iter().any(|sign| error.contains(sign)));
        let advice = |limit| format!("\nEach Python process may allocate {limit} MiB ({}).", self.memory_limit_mb);
        limit.map(advice).unwrap_or_default()
    }

    /// The place of a process that took too long, for the end of a message; empty if it is not known.
    pub fn at(place: &str) -> String {
        if place.is_empty() { String::new() } else { format!("; it was at (innermost first)\n{place}") }
    }
}
