//! An allocator that can limit the memory of a thread, so that input of others cannot take all of it.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Another allocator with [`limit`] for threads. It has an effect where it is the global allocator, as in the program `trainer`.
pub struct LimitedMemory<A>(pub A);

thread_local! {
    /// The bytes that this thread may still take.
    static ROOM: Cell<isize> = const { Cell::new(isize::MAX) };
    /// The flag to set when there is no room left; null without a limit.
    static EXCEEDED: Cell<*const AtomicBool> = const { Cell::new(null()) };
}

/// Lets this thread take so many bytes beside those it has. A thread that asks for more sets the flag and never goes on: an
/// allocator may not unwind, and to fail would end the process. Its memory is free again when the process ends.
///
/// The limit ends when the returned value is dropped; the one before it, if there was one, then holds again, and counts what was
/// taken meanwhile.
pub fn limit(bytes: usize, exceeded: Arc<AtomicBool>) -> Limit {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
    let before = (EXCEEDED.replace(Arc::as_ptr(&exceeded)), ROOM.replace(bytes));
    Limit { bytes, before, _exceeded: exceeded }
}

/// A limit of the thread that it was made on.
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
    // A panic is being printed, under a lock that others need; it soon ends the work.
    if std::thread::panicking() {
        return;
    }
    // SAFETY: the flag is that of the last `Limit` of this thread, which lives until it sets the pointer to the one before.
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

// SAFETY: every call goes to the other allocator with what the caller guarantees; the counting before it does not allocate.
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
