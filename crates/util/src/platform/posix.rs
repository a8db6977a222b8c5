//! macOS and other Unix: two answers of C's library that `/proc` gives on Linux.

use std::ffi::c_int;
use std::mem::MaybeUninit;

/// Bytes in a unit of `ru_maxrss`: macOS counts bytes, others KiB.
const UNIT: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };

/// Returns the most memory that this process had so far, in bytes.
pub(super) fn peak_memory() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is a valid place for the structure, which the call fills if it returns 0.
    let usage = unsafe { (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) };
    u64::try_from(usage?.ru_maxrss).ok().map(|max| max * UNIT)
}

/// Returns true if this process was started with this signal ignored; `None` if the system does not say.
pub(crate) fn is_ignored(signal: c_int) -> Option<bool> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action nothing changes, and `action` is a valid place for the old one, which is filled if the call
    // returns 0.
    let action = unsafe { (libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) };
    action.map(|action| action.sa_sigaction == libc::SIG_IGN)
}
