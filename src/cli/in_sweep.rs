//! A job's connection to the process of its sweep: a pipe at standard input. The end of the pipe asks the job to save and to stop.
//! The pipe ends when the sweep closes it, and also if the sweep is killed.

use std::io::{Read, stdin};
use std::process::Command;
use std::thread;

use burnish_util::interrupt::Interrupt;
use burnish_util::platform::parent_id;

/// Environment variable with the id of the sweep's process. Programs that a job starts inherit the variable, and are not jobs.
const PARENT: &str = "BURNISH_SWEEP_PROCESS";

/// Marks a command as a job of this process.
pub(super) fn mark(command: &mut Command) {
    command.env(PARENT, std::process::id().to_string());
}

/// Asks this run to stop when the process of its sweep closes the pipe, if this process is a job.
pub(super) fn follow_parent(interrupt: &Interrupt) {
    let parent = std::env::var(PARENT).ok().and_then(|id| id.parse().ok());
    if parent.is_none() || parent != parent_id() {
        return;
    }
    let interrupt = interrupt.clone();
    thread::spawn(move || {
        // An error is an end too.
        while matches!(stdin().lock().read(&mut [0; 64]), Ok(count) if count > 0) {}
        interrupt.ask();
    });
}
