//! The head on a GPU where nothing is compared: in chunks of tokens, one kernel reads the logits and one turns them into their gradients.

use std::ops::Range;

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::super::cube::head::{Chunk, FOUND, Shape};
use super::super::flex::to_host;
use super::super::simd::LogSum;
use super::products::{products, through};
use super::tiles::cut;
use super::types::{Head, HeadStats, TokenGrads, TokenStats};

/// Tokens per chunk. Each adds to the gradient of the whole matrix, so few are better; these logits are still less than half of what the
/// composed body holds.
const CHUNK: usize = 1024;

/// A head whose hidden states and matrix lie on a GPU, in a dtype whose sums f32 can hold.
pub(super) struct GpuHead<'a> {
    policy: Head<'a>,
    targets: &'a [u32],
    shape: Shape,
}

impl<'a> GpuHead<'a> {
    pub fn of(policy: Head<'a>, targets: &'a [u32]) -> Option<Self> {
        let hidden = policy.hidden.clone().try_into_primitive::<Cube>().ok()?;
        if targets.is_empty() || hidden.dtype() == DType::F64 {
            return None;
        }
        let softcap = policy.softcap.map(|softcap| (softcap.cap, softcap.temperature));
        Some(Self { policy, targets, shape: Shape::new(&hidden, targets, softcap) })
    }

    /// Computes the statistics with one transfer for all tokens.
    pub fn stats(&self) -> HeadStats {
        let found = self.shape.found(self.targets.len());
        for tokens in self.chunks() {
            self.chunk(&tokens).stats(&self.shape, &found, tokens.start);
        }
        read(found)
    }

    pub fn backward(&self, stats: &HeadStats, g: &TokenGrads, mut dw: Option<&mut Tensor<2>>) -> Tensor<2> {
        let given = self.shape.given(&given(stats, g));
        let through = |tokens: Range<usize>| {
            let d = self.chunk(&tokens).gradients(&self.shape, &given, tokens.start);
            through(self.policy, &tokens, d, dw.as_deref_mut())
        };
        Tensor::cat(self.chunks().map(through).collect(), 0)
    }

    /// Computes the logits of each chunk once, with a transfer for each.
    pub fn at_once(
        &self,
        mut dw: Option<&mut Tensor<2>>,
        mut loss: impl FnMut(Range<usize>, &TokenStats) -> TokenGrads,
    ) -> Tensor<2> {
        let through = |tokens: Range<usize>| {
            let (chunk, found) = (self.chunk(&tokens), self.shape.found(tokens.len()));
            chunk.stats(&self.shape, &found, 0);
            let stats = read(found);
            let grads = loss(tokens.clone(), &stats.tokens);
            let d = chunk.gradients(&self.shape, &self.shape.given(&given(&stats, &grads)), 0);
            through(self.policy, &tokens, d, dw.as_deref_mut())
        };
        Tensor::cat(self.chunks().map(through).collect(), 0)
    }

    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        cut(self.targets.len(), CHUNK)
    }

    fn chunk(&self, tokens: &Range<usize>) -> Chunk {
        Chunk::of(products(self.policy, tokens), tokens.start).expect("products lie where their factors do")
    }
}

/// The statistics of the tokens whose numbers these are.
fn read(found: CubeTensor) -> HeadStats {
    let found = to_host(Tensor::<1>::from_primitive::<Cube>(found));
    let column = |i: usize| -> Vec<f32> { found.iter().skip(i).step_by(FOUND).copied().collect() };
    let tokens = TokenStats {
        log_prob: column(2),
        is_top1: column(5).into_iter().map(|is| is > 0.0).collect(),
        entropy: column(3),
        sum_pi_squared: column(4),
        ..TokenStats::default()
    };
    let log_sums = found.chunks_exact(FOUND).map(|row| LogSum { max: row[0], rest: row[1] }).collect();
    HeadStats { tokens, log_sums, ..HeadStats::default() }
}

/// The numbers of each token from which its gradients come.
fn given(stats: &HeadStats, g: &TokenGrads) -> Vec<f32> {
    let of_tokens = stats.log_sums.iter().zip(&stats.tokens.entropy).zip(g.log_prob.iter().zip(&g.entropy));
    of_tokens.flat_map(|((log_sum, &entropy), (&gl, &ge))| [log_sum.max, log_sum.rest, gl, ge, entropy]).collect()
}
