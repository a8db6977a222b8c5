//! All that depends on the operating system. Every function exists for every system; one without an answer returns `None`, and
//! [`LACKS`] describes the gap.
//!
//! | File | Systems | Means |
//! |---|---|---|
//! | `linux.rs` | Linux | `/proc`, cgroups, `pidfd` |
//! | `other.rs` | macOS and others | crate `sysinfo`: on macOS `sysctl` and `libproc` |
//! | `unanswered.rs` | macOS and others | none: these questions have no answer there |
//! | `posix.rs` | macOS and other Unix | `getrusage`, `sigaction` |
//! | `unix.rs` | Linux, macOS and other Unix | process groups, limits, signals, free space |
//! | `windows.rs` | Windows | the names of `unix.rs`, as far as Windows has them |
//!
//! `tests.rs` asks Linux by both ways and compares the answers.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(not(target_os = "linux"), test))]
mod other;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod posix;
#[cfg(test)]
mod tests;
#[cfg(not(target_os = "linux"))]
mod unanswered;
#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;
#[cfg(all(unix, not(target_os = "linux")))]
pub use posix::*;
#[cfg(not(target_os = "linux"))]
pub use unanswered::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(not(unix))]
pub use windows::*;
