//! Statistics and gradients in one pass over the logits, on the CPU, for a loss whose terms each read only their own token's
//! statistics. The logits of some tokens are kept until their gradient is known, so they are computed once instead of twice.

use std::ops::Range;

use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use super::super::flex::{GRAIN, uninit, written_slice};
use super::flex::{FlexGradients, plain_row, plain_stats};
use super::softmax::RunningSums;
use super::tiles::{FlexHead, cut, tile};
use super::types::{TokenGrads, TokenStats};

/// Number of logits kept at a time, 64 MB: one tile of the vocabulary after another.
const MAX_LOGITS: usize = 16 * 1024 * 1024;

/// The number of tokens whose logits are kept at a time.
pub(crate) fn tokens_at_once(tokens: usize, vocabulary: usize) -> usize {
    (MAX_LOGITS / vocabulary).clamp(1, tokens.max(1))
}

/// Returns the gradient of the hidden states [n, h], like `flex_backward`. `loss` maps the statistics of a range of tokens to
/// their gradients.
pub(super) fn flex_fused_backward(
    policy: &FlexHead,
    targets: &[u32],
    dw: Option<&mut Tensor<2>>,
    device: &Device,
    mut loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
) -> Tensor<2> {
    let (n, v) = (targets.len(), policy.v);
    let max = tokens_at_once(n, v);
    let mut buffer = uninit(max * v);
    let mut gradients = FlexGradients::new(policy, n, dw);
    for tokens in cut(n, max) {
        let (c, targets) = (tokens.len(), &targets[tokens.clone()]);
        let (_, width) = tile(c, v);
        let mut sums = vec![RunningSums::default(); c];
        for columns in cut(v, width) {
            let logits = policy.logits(&tokens, &columns, &mut buffer[columns.start * c..columns.end * c]);
            each_row(logits, columns.len(), &mut sums, |i, x, sum| sum.add_tile(x, columns.start, targets[i]));
        }
        let stats = plain_stats(&sums);
        let grads = loss(tokens.clone(), &stats.tokens);
        for columns in cut(v, width) {
            // SAFETY: the loop above has written the logits of all columns.
            let d = unsafe { written_slice(&mut buffer[columns.start * c..columns.end * c]) };
            each_row(d, columns.len(), &mut sums, |i, x, _| {
                plain_row(policy.softcap, x, columns.start, targets[i], (i, &stats, &grads));
            });
            gradients.add(policy, &tokens, &columns, d);
        }
    }
    gradients.finish(device)
}

/// Calls `row` for each token with its index, its logits in a tile of `width` columns, and its state.
fn each_row<S: Send>(tile: &mut [f32], width: usize, states: &mut [S], row: impl Fn(usize, &mut [f32], &mut S) + Sync) {
    let rows = tile.par_chunks_mut(width).zip(states).enumerate();
    rows.with_min_len((GRAIN / width).max(1)).for_each(|(i, (x, state))| row(i, x, state));
}
