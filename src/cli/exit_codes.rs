//! The exit codes of all commands.

use burnish_distributed::LOST;

pub(super) const DONE: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const WRONG_INPUT: u8 = 2;
pub(super) const INTERRUPTED: u8 = 3;
/// Exit code of a panic in Rust.
const DEFECT: u8 = 101;

/// Each exit code and its meaning.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (DONE, "the command did all of its work"),
    (FAILED, "a failure, also in a job of a sweep; or a difference, an incomplete recipe or a problem that the command found"),
    (WRONG_INPUT, "wrong input: nothing was begun, and the message says what to type"),
    (INTERRUPTED, "a signal or an alarm stopped the run after it had saved: the same command resumes it"),
    (LOST, "another process of the run is lost: the same command resumes from the last checkpoint"),
    (DEFECT, "a defect of the program, with its place in the code"),
];

/// Returns the table for the end of the help text.
pub(super) fn help() -> String {
    let rows: String = EXIT_CODES.iter().map(|(code, meaning)| format!("  {code:<5}{meaning}\n")).collect();
    format!("Exit codes:\n{rows}  128+N  a second signal N ended the process at once")
}
