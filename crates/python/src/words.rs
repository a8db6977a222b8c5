//! Terms for users' files and for the settings of their processes in messages. They differ between rewards and agents.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// Words that show exhausted memory in messages of Python, NumPy, torch and C++.
const OUT_OF_MEMORY: [&str; 3] = ["MemoryError", "allocate memory", "bad_alloc"];

/// Names of files and settings.
#[derive(Debug)]
pub struct Words {
    /// One file, with an article.
    pub file: &'static str,
    pub files: &'static str,
    /// Setting of the interpreter.
    pub python: &'static str,
    /// Setting of the environment variables to pass on.
    pub pass_env: &'static str,
    /// Setting of the memory limit.
    pub memory_limit_mb: &'static str,
    /// Setting of the CPU time limit.
    pub cpu_limit: &'static str,
}

impl Words {
    /// Describes the end of a process, to follow its name. `cpu` is its CPU time limit in seconds.
    pub fn ended(&self, status: ExitStatus, cpu: u64) -> String {
        match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit status {code}"),
            (_, Some(signal)) if signal == Signal::XCPU.as_raw() => format!("used more than {cpu} s of CPU ({})", self.cpu_limit),
            (_, Some(signal)) if signal == Signal::KILL.as_raw() => {
                "was killed by signal 9; the system does this when it runs out of memory".to_owned()
            }
            (_, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
        }
    }

    /// Returns advice for an error about exhausted memory; empty for other errors. `limit` is the limit of each process in MiB.
    pub fn memory_hint(&self, error: &str, limit: Option<u64>) -> String {
        let limit = limit.filter(|_| OUT_OF_MEMORY.iter().any(|sign| error.contains(sign)));
        let advice = |limit| format!("\nEach Python process may allocate {limit} MiB ({}).", self.memory_limit_mb);
        limit.map(advice).unwrap_or_default()
    }

    /// Returns the position of a process that took too long, for the end of a message; empty if unknown.
    pub fn at(place: &str) -> String {
        if place.is_empty() { String::new() } else { format!("; it was at (innermost first)\n{place}") }
    }
}
