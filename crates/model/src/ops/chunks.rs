//! The rows of packed sequences in chunks, which the CPU kernels of recurrences process one after another.

use std::ops::Range;

use rayon::prelude::*;

use super::attention_flex::Out;
use super::packed::Packed;

/// Rows of a chunk.
pub(crate) const CHUNK: usize = 64;

/// The states that a forward pass returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Nothing,
    /// Before each chunk except the first of a sequence, [chunks, heads, state].
    Chunks,
    /// After each tree's stem, [trees, heads, state].
    Ends,
}

/// Rows of a segment that are processed together, and the index of the state before them; `None` before the first token.
pub(super) struct RowChunk {
    pub rows: Range<usize>,
    pub state: Option<usize>,
}

/// The chunks of the segments of each tree, and the number of states before chunks.
pub(super) fn chunks(packed: &Packed) -> (Vec<Vec<Vec<RowChunk>>>, usize) {
    let mut count = 0;
    let mut segment = |rows: &Range<usize>, begins: bool| {
        let firsts = rows.clone().step_by(CHUNK);
        let chunk = |first: usize| {
            let has_state = !(begins && first == rows.start);
            count += usize::from(has_state);
            RowChunk { rows: first..rows.end.min(first + CHUNK), state: has_state.then(|| count - 1) }
        };
        firsts.map(chunk).collect::<Vec<_>>()
    };
    let trees = packed.trees.iter().map(|tree| tree.iter().map(|s| segment(&s.rows, s.stem.is_empty())).collect()).collect();
    (trees, count)
}

/// Runs `task` on each tree and each of `parts` parts of its heads, the largest trees first.
pub(super) fn for_each<S: Default>(packed: &Packed, parts: usize, task: impl Fn(usize, usize, &mut S) + Sync) {
    let rows = |tree: usize| packed.trees[tree].iter().map(|segment| segment.rows.len()).sum::<usize>();
    let mut tasks: Vec<_> = (0..packed.trees.len()).flat_map(|tree| (0..parts).map(move |part| (tree, part))).collect();
    tasks.sort_by_key(|(tree, _)| std::cmp::Reverse(rows(*tree)));
    tasks.into_iter().par_bridge().for_each_init(S::default, |scratch, (tree, part)| task(tree, part, scratch));
}

/// Writes values to a buffer.
///
/// # Safety
/// The elements must be within the buffer, and no other code may access them meanwhile.
pub(super) unsafe fn copy(values: &[f32], to: Out, at: usize) {
    // SAFETY: promised by the caller.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), to.at(at), values.len()) }
}

/// Sets a buffer to `len` zeros.
pub(super) fn zeros<T: Default + Clone>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    buffer.clear();
    buffer.resize(len, T::default());
    buffer
}

/// Sets the length of a buffer, with unspecified contents.
pub(super) fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    buffer.resize(len, 0.0);
    buffer
}
