//! The head on a GPU, in chunks of tokens: kernels read the logits, and turn them into their gradients in place.

use std::ops::Range;

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::super::cube::chunk::{Chunk, ROW_STATS, Targets};
use super::super::cube::head_compared::{DivergenceKind, PAIR_STATS};
use super::super::cube::sample::MAX_VOCABULARY;
use super::super::flex::to_host;
use super::super::simd::LogSum;
use super::divergence::Divergence;
use super::gpu_gradient_inputs::{gradient_inputs, pulls, reference_inputs};
use super::products::{GPU_CHUNK, products, through};
use super::tiles::cut;
use super::top_k::{Comparison, TopK, compare};
use super::types::{Compared, Head, HeadStats, TokenGrads, TokenStats};

/// A head on a GPU with its comparison. Hidden states and matrix have a dtype whose sums fit f32.
pub(super) struct GpuHead<'a> {
    policy: Head<'a>,
    tokens: usize,
    targets: Targets,
    compared: Option<Compared<'a>>,
}

impl<'a> GpuHead<'a> {
    pub(super) fn new(policy: Head<'a>, targets: &[u32], compared: Option<Compared<'a>>) -> Option<Self> {
        let hidden = on_gpu(policy)?;
        let fits = match compared {
            None | Some(Compared::Uniform) => true,
            Some(Compared::Head(other, _)) => on_gpu(other).is_some(),
            Some(Compared::TopK { .. }) => policy.w.dims()[0] < MAX_VOCABULARY,
        };
        let tokens = targets.len();
        (fits && tokens > 0).then(|| Self { policy, tokens, targets: Targets::new(&hidden, targets), compared })
    }

    /// Computes the statistics with one transfer for all tokens: the statistics of the policy, of a second model, and of the
    /// comparison.
    pub(super) fn stats(&self) -> HeadStats {
        let n = self.tokens;
        let more = match self.compared {
            None => 0,
            Some(Compared::Uniform) => 1,
            Some(Compared::Head(..)) => ROW_STATS + PAIR_STATS,
            Some(Compared::TopK { teacher, .. }) => teacher.k + 1,
        };
        let found = self.targets.floats(n * (ROW_STATS + more));
        let ids = match self.compared {
            Some(Compared::TopK { teacher, .. }) => Some((self.targets.upload_ids(&teacher.ids), teacher.k)),
            _ => None,
        };
        for tokens in cut(n, GPU_CHUNK) {
            let (chunk, first) = (self.chunk(&tokens), tokens.start);
            chunk.stats(&self.targets, &found, first);
            if let Some((ids, k)) = &ids {
                chunk.at_ids(ids, *k, &found, n * ROW_STATS + first * (k + 1));
            }
            match self.compared {
                Some(Compared::Uniform) => chunk.depth(&found, first, n * ROW_STATS + first),
                Some(Compared::Head(head, divergence)) => {
                    let other = chunk_of(head, &tokens);
                    other.stats(&self.targets, &found, n + first);
                    chunk.divergence(
                        &other,
                        kind(divergence),
                        &found,
                        [first, n + first, 2 * n * ROW_STATS + first * PAIR_STATS],
                    );
                }
                _ => {}
            }
        }
        let found = to_host(Tensor::<1>::from_primitive::<Cube>(found));
        let (own, more) = found.split_at(n * ROW_STATS);
        let mut stats = read(own);
        self.compare(&mut stats, more);
        stats
    }

    /// Adds the results of the comparison to `stats`.
    fn compare(&self, stats: &mut HeadStats, found: &[f32]) {
        match self.compared {
            None => {}
            Some(Compared::Uniform) => {
                stats.tokens.full_kl = found.iter().zip(&stats.log_sums).map(|(depth, sum)| depth + sum.rest).collect();
            }
            Some(Compared::Head(_, divergence)) => {
                let (other, apart) = found.split_at(self.tokens * ROW_STATS);
                let other = read(other);
                let column = |i: usize| apart.iter().skip(i).step_by(PAIR_STATS).copied();
                stats.part = column(if matches!(divergence, Divergence::Jsd { .. }) { 1 } else { 0 }).collect();
                let of_teacher = |entropy: f32| if divergence == Divergence::CrossEntropy { entropy } else { 0.0 };
                stats.tokens.full_kl = column(0).zip(other.tokens.entropy).map(|(d, entropy)| d + of_teacher(entropy)).collect();
                stats.reference = other.log_sums;
            }
            Some(Compared::TopK { teacher, measure }) => {
                let rows = found.chunks_exact(teacher.k + 1).zip(&stats.log_sums);
                let log_probs: Vec<f32> = rows.flat_map(|(row, sum)| row.iter().map(|&x| sum.log_p(x))).collect();
                let rows = || log_probs.chunks_exact(teacher.k + 1);
                let student: Vec<f32> = rows().flat_map(|row| &row[..teacher.k]).copied().collect();
                let thresholds: Vec<f32> = rows().map(|row| row[teacher.k]).collect();
                let Comparison { divergence, pull, stats: top_k } = compare(teacher, &student, &thresholds, measure);
                (stats.tokens.full_kl, stats.tokens.top_k, stats.pull) = (divergence, top_k, pull);
                stats.found = student;
            }
        }
    }

    /// Computes the gradients; `stats` is the result of [`Self::stats`] for the same tokens.
    pub(super) fn backward(&self, stats: &HeadStats, g: &TokenGrads, mut dw: Option<&mut Tensor<2>>) -> Tensor<2> {
        let numbers = self.targets.upload_floats(&gradient_inputs(stats, g, self.compared, self.policy.w.dims()[0]));
        let of_other = match self.compared {
            Some(Compared::Head(..)) => Some(self.targets.upload_floats(&reference_inputs(stats, g))),
            _ => None,
        };
        let through = |tokens: Range<usize>| {
            let (chunk, first) = (self.chunk(&tokens), tokens.start);
            let d = match (self.compared, &of_other) {
                (Some(Compared::Head(head, divergence)), Some(other)) => {
                    let inputs = [&numbers, other];
                    chunk.compared_gradients(&chunk_of(head, &tokens), kind(divergence), &self.targets, inputs, first)
                }
                (Some(Compared::TopK { teacher, .. }), _) => {
                    chunk.gradients(&self.targets, &numbers, first, &pulls(teacher, &tokens, stats, g))
                }
                _ => chunk.gradients(&self.targets, &numbers, first, &[]),
            };
            through(self.policy, &tokens, d, dw.as_deref_mut())
        };
        Tensor::cat(cut(self.tokens, GPU_CHUNK).map(through).collect(), 0)
    }

    /// Computes the logits of each chunk once, with one transfer per chunk, without a comparison.
    pub(crate) fn fused_backward(
        &self,
        mut dw: Option<&mut Tensor<2>>,
        mut loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
    ) -> Tensor<2> {
        let through = |tokens: Range<usize>| {
            let (chunk, found) = (self.chunk(&tokens), self.targets.floats(tokens.len() * ROW_STATS));
            chunk.stats(&self.targets, &found, 0);
            let stats = read(&to_host(Tensor::<1>::from_primitive::<Cube>(found)));
            let grads = loss(tokens.clone(), &stats.tokens);
            let inputs = self.targets.upload_floats(&gradient_inputs(&stats, &grads, None, self.policy.w.dims()[0]));
            through(self.policy, &tokens, chunk.gradients(&self.targets, &inputs, 0, &[]), dw.as_deref_mut())
        };
        Tensor::cat(cut(self.tokens, GPU_CHUNK).map(through).collect(), 0)
    }

    fn chunk(&self, tokens: &Range<usize>) -> Chunk {
        chunk_of(self.policy, tokens)
    }
}

/// Returns the top-k tokens of each token's distribution, with one transfer; `None` if the head is not on a GPU.
pub(super) fn gpu_top_k(head: Head, k: usize) -> Option<TopK> {
    let (n, mut top) = (head.hidden.dims()[0], TopK { k, ..TopK::default() });
    let head = GpuHead::new(head, &vec![0; n], None).filter(|head| head.policy.w.dims()[0] < MAX_VOCABULARY)?;
    let found = head.targets.floats(n * (ROW_STATS + 2 * k));
    for tokens in cut(n, GPU_CHUNK) {
        let chunk = head.chunk(&tokens);
        chunk.stats(&head.targets, &found, tokens.start);
        chunk.largest(k, &found, n * ROW_STATS + tokens.start * 2 * k);
    }
    let found = to_host(Tensor::<1>::from_primitive::<Cube>(found));
    let (own, entries) = found.split_at(n * ROW_STATS);
    for (sum, row) in read(own).log_sums.iter().zip(entries.chunks_exact(2 * k)) {
        let mut row: Vec<(f32, u32)> = row.chunks_exact(2).map(|entry| (entry[1], entry[0] as u32)).collect();
        row.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        top.ids.extend(row.iter().map(|(_, id)| id));
        top.log_probs.extend(row.iter().map(|&(logit, _)| sum.log_p(logit)));
    }
    Some(top)
}

/// The hidden states of a head, if the kernels support them.
fn on_gpu(head: Head) -> Option<CubeTensor> {
    head.hidden.clone().try_into_primitive::<Cube>().ok().filter(|hidden| hidden.dtype() != DType::F64)
}

/// The products h·wᵀ of these tokens.
fn chunk_of(head: Head, tokens: &Range<usize>) -> Chunk {
    let softcap = head.softcap.map(|softcap| (softcap.cap, softcap.temperature));
    Chunk::new(products(head, tokens), tokens.start, softcap).expect("products lie where their factors do")
}

/// The kernel for a divergence, and its β. The cross-entropy uses the forward kernel; the caller adds the entropy of the second
/// model.
fn kind(divergence: Divergence) -> (DivergenceKind, f32) {
    match divergence {
        Divergence::ReverseKl => (DivergenceKind::Reverse, 0.0),
        Divergence::ForwardKl | Divergence::CrossEntropy => (DivergenceKind::Forward, 0.0),
        Divergence::Jsd { beta } => (DivergenceKind::JensenShannon, beta),
    }
}

/// Reads the statistics of tokens from [`ROW_STATS`] values per token.
fn read(found: &[f32]) -> HeadStats {
    let column = |i: usize| -> Vec<f32> { found.iter().skip(i).step_by(ROW_STATS).copied().collect() };
    let tokens = TokenStats {
        log_prob: column(2),
        is_top1: column(5).into_iter().map(|is| is > 0.0).collect(),
        entropy: column(3),
        sum_pi_squared: column(4),
        ..TokenStats::default()
    };
    let log_sums = found.chunks_exact(ROW_STATS).map(|row| LogSum { max: row[0], rest: row[1] }).collect();
    HeadStats { tokens, log_sums, ..HeadStats::default() }
}
