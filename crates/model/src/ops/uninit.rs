//! Buffers of floats that kernels write before they are read.

use std::mem::MaybeUninit;

/// Elements that may not have been written yet.
pub(super) type Uninit = [MaybeUninit<f32>];

/// Returns a buffer that is not zeroed: zeroing would take as long as the cheap kernels themselves.
pub(super) fn uninit(n: usize) -> Box<Uninit> {
    Box::new_uninit_slice(n)
}

/// Returns the elements of a written buffer.
///
/// # Safety
/// Every element must have been written.
pub(super) unsafe fn written(buffer: Box<Uninit>) -> Vec<f32> {
    // SAFETY: promised by the caller.
    unsafe { buffer.assume_init() }.into_vec()
}

/// Returns the elements of a written slice.
///
/// # Safety
/// Every element must have been written.
pub(super) unsafe fn written_slice(slice: &mut Uninit) -> &mut [f32] {
    // SAFETY: promised by the caller; a written element has the layout of an f32.
    unsafe { &mut *(std::ptr::from_mut(slice) as *mut [f32]) }
}
