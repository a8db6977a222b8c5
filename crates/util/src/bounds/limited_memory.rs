//! An allocator that can limit the memory of a thread, so that untrusted input cannot take all of it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Wraps an allocator and adds [`limit`] per thread. Has an effect only as the global allocator, as in the program `trainer`.
pub struct LimitedMemory<A>(pub A);

thread_local! {
    /// Bytes that this thread may still allocate.
    static ROOM: Cell<isize> = const { Cell::new(isize::MAX) };
    /// Flag to set when the limit is exceeded; null without a limit.
    static EXCEEDED: Cell<*const AtomicBool> = const { Cell::new(null()) };
}

/// Lets this thread allocate `bytes` more. A thread that asks for more sets the flag and then sleeps forever: an allocator may
/// not unwind, and failing would end the process. Its memory stays taken until the process ends.
///
/// The limit ends when the returned value is dropped. An outer limit then applies again, and counts what was allocated meanwhile.
pub fn limit(bytes: usize, exceeded: Arc<AtomicBool>) -> Limit {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
    let before = (EXCEEDED.replace(Arc::as_ptr(&exceeded)), ROOM.replace(bytes));
    Limit { bytes, before, _exceeded: exceeded }
}

/// A limit of the thread that created it.
pub struct Limit {
    bytes: isize,
    before: (*const AtomicBool, isize),
    _exceeded: Arc<AtomicBool>,
}

impl Drop for Limit {
    fn drop(&mut self) {
        let (exceeded, room) = self.before;
        let taken = self.bytes.saturating_sub(ROOM.get());
        EXCEEDED.set(exceeded);
        ROOM.set(room.saturating_sub(taken));
    }
}

fn take(bytes: usize) {
    if EXCEEDED.get().is_null() {
        return;
    }
    let room = ROOM.get().saturating_sub_unsigned(bytes);
    ROOM.set(room);
    if room < 0 {
        wait_for_the_end();
    }
}

#[cold]
fn wait_for_the_end() {
    // A panic is being printed, under a lock that other threads need. The panic will end the work soon.
    if std::thread::panicking() {
        return;
    }
    // SAFETY: the pointer belongs to the innermost `Limit` of this thread, which restores the previous pointer when it is
    // dropped.
    unsafe { &*EXCEEDED.get() }.store(true, Ordering::Release);
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn give(bytes: usize) {
    if !EXCEEDED.get().is_null() {
        ROOM.set(ROOM.get().saturating_add_unsigned(bytes));
    }
}

// SAFETY: every call is forwarded to the inner allocator with the caller's guarantees; counting does not allocate.
unsafe impl<A: GlobalAlloc> GlobalAlloc for LimitedMemory<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller guarantees the same of this allocator.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller guarantees the same of this allocator.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: the caller guarantees the same of this allocator.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        give(layout.size());
        // SAFETY: the caller guarantees the same of this allocator.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}
