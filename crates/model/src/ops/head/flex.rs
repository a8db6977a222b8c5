//! The head on the CPU, in tiles of the logits.

use std::ops::Range;

use burn::tensor::{Device, Tensor};

use super::super::flex::{matmul as mm, tensor_from_vec, threads, to_host};
use super::super::simd::{self, LogSum};
use super::divergence::Divergence;
use super::softmax::{RunningSums, softmax};
use super::sparse::SparseMeasure;
use super::tiles::{FlexHead, Tiles};
use super::top_k::{Comparison, LargestLogits, TopK, compare};
use super::types::{Compared, HeadStats, Softcap, TokenGrads, TokenStats};

/// [`Compared`] with values that can be read as slices.
pub(super) enum FlexCompared<'a> {
    Head(Box<FlexHead>, Divergence),
    TopK { teacher: &'a TopK, measure: SparseMeasure },
    Uniform,
}

impl<'a> FlexCompared<'a> {
    pub(super) fn new(compared: Compared<'a>) -> Option<Self> {
        Some(match compared {
            Compared::Head(head, divergence) => Self::Head(Box::new(FlexHead::new(head)?), divergence),
            Compared::TopK { teacher, measure } => Self::TopK { teacher, measure },
            Compared::Uniform => Self::Uniform,
        })
    }
}

pub(super) fn flex_stats(policy: &FlexHead, targets: &[u32], compared: Option<&FlexCompared>) -> HeadStats {
    match compared {
        None => plain_stats(&softmax(policy, targets, (), |_, _, _, ()| ()).0),
        Some(FlexCompared::Head(head, divergence)) => stats_with_head(policy, targets, head, *divergence),
        Some(FlexCompared::TopK { teacher, measure }) => stats_with_top_k(policy, targets, teacher, *measure),
        Some(FlexCompared::Uniform) => stats_with_uniform(policy, targets),
    }
}

pub(super) fn plain_stats(sums: &[RunningSums]) -> HeadStats {
    let column = |number: fn(&RunningSums) -> f32| sums.iter().map(number).collect();
    let tokens = TokenStats {
        log_prob: column(|x| x.log_sum().log_p(x.target)),
        is_top1: sums.iter().map(RunningSums::is_top1).collect(),
        entropy: column(RunningSums::entropy),
        sum_pi_squared: column(RunningSums::sum_of_squares),
        ..TokenStats::default()
    };
    HeadStats { tokens, log_sums: sums.iter().map(RunningSums::log_sum).collect(), ..HeadStats::default() }
}

fn stats_with_head(policy: &FlexHead, targets: &[u32], reference: &FlexHead, divergence: Divergence) -> HeadStats {
    let n = targets.len();
    let mut stats = flex_stats(policy, targets, None);
    let (sums, _) = softmax(reference, targets, (), |_, _, _, ()| ());
    stats.reference = sums.iter().map(RunningSums::log_sum).collect();
    let mut parts = vec![[0f32; 2]; n];
    let mut tiles = Tiles::new(policy, Some(reference), n);
    for (rows, columns) in tiles.all(n) {
        tiles.rows(&rows, &columns, &mut parts, |i, x, y, parts| {
            let row = divergence.row(x, y, (stats.log_sums[i], stats.reference[i]));
            *parts = [parts[0] + row[0], parts[1] + row[1]];
        });
    }
    stats.part = parts.iter().map(|part| if matches!(divergence, Divergence::Jsd { .. }) { part[1] } else { part[0] }).collect();
    let of_teacher = |i: usize| if divergence == Divergence::CrossEntropy { sums[i].entropy() } else { 0.0 };
    stats.tokens.full_kl = parts.iter().enumerate().map(|(i, part)| part[0] + of_teacher(i)).collect();
    stats
}

fn stats_with_top_k(policy: &FlexHead, targets: &[u32], teacher: &TopK, measure: SparseMeasure) -> HeadStats {
    let k = teacher.k;
    let (sums, seen) = softmax(policy, targets, (vec![0f32; k], LargestLogits::new(k)), |i, start, x, (logits, largest)| {
        for (logit, &id) in logits.iter_mut().zip(teacher.ids(i)) {
            if let Some(&x) = (id as usize).checked_sub(start).and_then(|at| x.get(at)) {
                *logit = x;
            }
        }
        largest.add(start, x);
    });
    let mut stats = plain_stats(&sums);
    let log_prob = |(i, x): (usize, f32)| stats.log_sums[i].log_p(x);
    let student: Vec<f32> = seen.iter().enumerate().flat_map(|(i, (x, _))| x.iter().map(move |&x| log_prob((i, x)))).collect();
    let thresholds: Vec<f32> = seen.iter().enumerate().map(|(i, (_, largest))| log_prob((i, largest.min()))).collect();
    let Comparison { divergence, pull, stats: top_k } = compare(teacher, &student, &thresholds, measure);
    (stats.tokens.full_kl, stats.tokens.top_k, stats.pull) = (divergence, top_k, pull);
    stats.found = student;
    stats
}

fn stats_with_uniform(policy: &FlexHead, targets: &[u32]) -> HeadStats {
    let add = |x: &[f32], sum: &mut f64| *sum += x.iter().map(|&x| f64::from(x)).sum::<f64>();
    let (sums, of_logits) = softmax(policy, targets, 0.0, |_, _, x, sum| add(x, sum));
    let mut stats = plain_stats(&sums);
    let v = policy.v as f64;
    let divergence = |(sum, of_logits): (&RunningSums, f64)| {
        let LogSum { max, rest } = sum.log_sum();
        (f64::from(max) + f64::from(rest) - of_logits / v) as f32
    };
    stats.tokens.full_kl = sums.iter().zip(of_logits).map(divergence).collect();
    stats
}

/// Returns the top-k tokens of each token's distribution.
pub(super) fn flex_top_k(head: &FlexHead, tokens: usize, k: usize) -> TopK {
    let (sums, seen) = softmax(head, &vec![0; tokens], LargestLogits::new(k), |_, start, x, largest| largest.add(start, x));
    let mut top = TopK { k, ..TopK::default() };
    for (sum, largest) in sums.iter().zip(seen) {
        for (logit, id) in largest.entries {
            top.ids.push(id);
            top.log_probs.push(sum.log_sum().log_p(logit));
        }
    }
    top
}

pub(super) fn flex_backward(
    policy: &FlexHead,
    targets: &[u32],
    stats: &HeadStats,
    g: &TokenGrads,
    compared: Option<&FlexCompared>,
    dw: Option<&mut Tensor<2>>,
    device: &Device,
) -> Tensor<2> {
    let (n, v) = (targets.len(), policy.v);
    let (reference, teacher) = match compared {
        None | Some(FlexCompared::Uniform) => (None, None),
        Some(FlexCompared::Head(head, divergence)) => (Some((&**head, *divergence)), None),
        Some(FlexCompared::TopK { teacher, .. }) => (None, Some(*teacher)),
    };
    let mut tiles = Tiles::new(policy, reference.map(|(head, _)| head), n);
    let (mut gradients, mut nothing) = (FlexGradients::new(policy, n, dw), vec![(); n]);
    for (rows, columns) in tiles.all(n) {
        let d = tiles.rows(&rows, &columns, &mut nothing, |i, x, y, _| {
            if compared.is_none() {
                return plain_row(policy.softcap, x, columns.start, targets[i], (i, stats, g));
            }
            let (log_sum, entropy) = (stats.log_sums[i], (g.entropy[i], stats.tokens.entropy[i]));
            let logits = policy.softcap.map(|softcap| (softcap, x.to_vec()));
            match (reference, teacher) {
                (Some((_, divergence)), _) => {
                    let kl = (g.full_kl[i], stats.part[i]);
                    divergence.backward_row(x, y, (log_sum, stats.reference[i]), g.log_prob[i], entropy, kl);
                }
                (None, Some(teacher)) => {
                    let pull = &stats.pull[i * teacher.k..(i + 1) * teacher.k];
                    simd::dlogits_row(x, log_sum, g.log_prob[i] - g.full_kl[i] * pull.iter().sum::<f32>(), entropy);
                    for (&id, pull) in teacher.ids(i).iter().zip(pull) {
                        if let Some(d) = (id as usize).checked_sub(columns.start).and_then(|at| x.get_mut(at)) {
                            *d -= g.full_kl[i] * pull;
                        }
                    }
                }
                (None, None) => {
                    simd::dlogits_row(x, log_sum, g.log_prob[i] - g.full_kl[i], entropy);
                    let share = g.full_kl[i] / v as f32;
                    x.iter_mut().for_each(|d| *d -= share);
                }
            }
            if let Some(d) = (targets[i] as usize).checked_sub(columns.start).and_then(|at| x.get_mut(at)) {
                *d += g.log_prob[i];
            }
            if let Some((softcap, logits)) = logits {
                softcap.backward(&logits, x);
            }
        });
        gradients.add(policy, &rows, &columns, d);
    }
    gradients.finish(device)
}

/// The gradients of the hidden states [n, h] and, if requested, of the matrix [v, h], accumulated tile by tile.
pub(super) struct FlexGradients<'a> {
    hidden: Vec<f32>,
    h: usize,
    w: Option<(Vec<f32>, &'a mut Tensor<2>)>,
}

impl<'a> FlexGradients<'a> {
    /// `dw`: the gradient of the matrix to add to.
    pub(super) fn new(policy: &FlexHead, tokens: usize, dw: Option<&'a mut Tensor<2>>) -> Self {
        Self { hidden: vec![0.0; tokens * policy.h], h: policy.h, w: dw.map(|dw| (into_host(dw), dw)) }
    }

    /// Adds the gradients of a tile, given `d` [rows, columns], the gradient of its logits. A token's first columns must come
    /// first.
    pub(super) fn add(&mut self, policy: &FlexHead, rows: &Range<usize>, columns: &Range<usize>, d: &[f32]) {
        let (n, v, h, more) = (rows.len(), columns.len(), self.h, columns.start > 0);
        let hidden = &mut self.hidden[rows.start * h..rows.end * h];
        mm((n, h, v), hidden, (h, 1), more, d, (v, 1), policy.columns(columns), (h, 1), threads(n, h, v));
        if let Some((w, _)) = &mut self.w {
            let w = &mut w[columns.start * h..columns.end * h];
            mm((v, h, n), w, (h, 1), true, d, (1, v), policy.rows(rows), (h, 1), threads(v, h, n));
        }
    }

    /// Puts back the gradient of the matrix, and returns the gradient of the hidden states.
    pub(super) fn finish(self, device: &Device) -> Tensor<2> {
        let matrix = |x: Vec<f32>| {
            let rows = x.len() / self.h;
            tensor_from_vec(x, [rows, self.h], device)
        };
        if let Some((w, dw)) = self.w {
            *dw = matrix(w);
        }
        matrix(self.hidden)
    }
}

/// Turns the logits of a tile row into their gradients, without a comparison. `start` is the first column. The last argument is
/// the token's index, the statistics of all tokens, and their gradients.
pub(super) fn plain_row(
    softcap: Option<Softcap>,
    x: &mut [f32],
    start: usize,
    target: u32,
    (i, stats, g): (usize, &HeadStats, &TokenGrads),
) {
    let logits = softcap.map(|softcap| (softcap, x.to_vec()));
    simd::dlogits_row(x, stats.log_sums[i], g.log_prob[i], (g.entropy[i], stats.tokens.entropy[i]));
    if let Some(d) = (target as usize).checked_sub(start).and_then(|at| x.get_mut(at)) {
        *d += g.log_prob[i];
    }
    if let Some((softcap, logits)) = logits {
        softcap.backward(&logits, x);
    }
}

/// Moves the values out of `t`, without a copy if the buffer is not shared.
fn into_host(t: &mut Tensor<2>) -> Vec<f32> {
    let empty = Tensor::zeros([1, 1], &t.device());
    to_host(std::mem::replace(t, empty))
}
