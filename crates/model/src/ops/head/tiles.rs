//! The logits of the CPU implementation, tile by tile.

use burn::backend::flex::FlexTensor;
use rayon::prelude::*;
use std::ops::Range;

use super::super::flex::{GRAIN, Uninit, f32s, flex_f32, product_to, threads, uninit};
use super::types::{Head, Softcap};

/// Logits per tile: 8 MB.
const TILE: usize = 2 * 1024 * 1024;

/// Cuts 0..n into ranges of `step`; the last one may be shorter.
pub(super) fn cut(n: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(step).map(move |start| start..(start + step).min(n))
}

/// The numbers of tokens and of vocabulary columns in one tile of logits.
pub fn tile(tokens: usize, vocabulary: usize) -> (usize, usize) {
    let rows = tokens.clamp(1, 4096);
    (rows, (TILE / rows).max(512).min(vocabulary))
}

/// A [`Head`] with values that can be read as slices.
pub(super) struct FlexHead {
    hidden: FlexTensor,
    w: FlexTensor,
    pub v: usize,
    pub h: usize,
    pub softcap: Option<Softcap>,
}

impl FlexHead {
    pub(super) fn new(head: Head) -> Option<Self> {
        let [v, h] = head.w.dims();
        Some(Self { hidden: flex_f32(head.hidden)?, w: flex_f32(head.w)?, v, h, softcap: head.softcap })
    }

    pub(super) fn rows(&self, tokens: &Range<usize>) -> &[f32] {
        &f32s(&self.hidden)[tokens.start * self.h..tokens.end * self.h]
    }

    pub(super) fn columns(&self, columns: &Range<usize>) -> &[f32] {
        &f32s(&self.w)[columns.start * self.h..columns.end * self.h]
    }

    /// Computes logits [tokens, columns] into the beginning of `out`, and returns them.
    pub(super) fn logits<'o>(&self, tokens: &Range<usize>, columns: &Range<usize>, out: &'o mut Uninit) -> &'o mut [f32] {
        let (n, v, h) = (tokens.len(), columns.len(), self.h);
        let logits = product_to((n, v, h), out, (self.rows(tokens), (h, 1)), (self.columns(columns), (1, h)), threads(n, v, h));
        if let Some(softcap) = self.softcap {
            logits.par_chunks_mut(GRAIN).for_each(|x| softcap.apply(x));
        }
        logits
    }
}

/// Logits of the policy and, if given, of the reference, tile by tile. Tiles have many tokens and few columns: they stay in
/// cache, and each part of the matrix and of its gradient is read once per chunk of tokens.
pub(super) struct Tiles<'a> {
    policy: &'a FlexHead,
    reference: Option<&'a FlexHead>,
    x: Box<Uninit>,
    y: Box<Uninit>,
}

impl<'a> Tiles<'a> {
    pub(super) fn new(policy: &'a FlexHead, reference: Option<&'a FlexHead>, tokens: usize) -> Self {
        let (rows, columns) = tile(tokens, policy.v);
        let of_reference = if reference.is_some() { rows * columns } else { 0 };
        Self { policy, reference, x: uninit(rows * columns), y: uninit(of_reference) }
    }

    /// Calls `row` for each row of a tile with its token, the policy's logits, the reference's logits and the token's `state`. Returns the
    /// policy's tile as `row` has left it.
    pub(super) fn rows<S: Send>(
        &mut self,
        tokens: &Range<usize>,
        columns: &Range<usize>,
        state: &mut [S],
        row: impl Fn(usize, &mut [f32], &[f32], &mut S) + Sync,
    ) -> &[f32] {
        let v = columns.len();
        let x = self.policy.logits(tokens, columns, &mut self.x);
        let y: &[f32] = self.reference.map_or(&[], |reference| reference.logits(tokens, columns, &mut self.y));
        let rows = x.par_chunks_mut(v).zip(&mut state[tokens.clone()]).enumerate();
        rows.with_min_len((GRAIN / v).max(1)).for_each(|(i, (x, state))| {
            row(tokens.start + i, x, y.get(i * v..(i + 1) * v).unwrap_or_default(), state);
        });
        x
    }

    /// All tiles: for each chunk of tokens, the columns of the vocabulary.
    pub(super) fn all(&self, tokens: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + use<> {
        let (v, (rows, columns)) = (self.policy.v, tile(tokens, self.policy.v));
        cut(tokens, rows).flat_map(move |tokens| cut(v, columns).map(move |columns| (tokens.clone(), columns)))
    }
}
