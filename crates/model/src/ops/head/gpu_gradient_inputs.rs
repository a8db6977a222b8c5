//! The per-token values from which the GPU kernels compute the gradients of the logits.

use std::ops::Range;

use super::super::cube::head_top_k::Pull;
use super::top_k::TopK;
use super::types::{Compared, HeadStats, TokenGrads};

/// The values of [`GradientInputs`](super::super::cube::chunk::GradientInputs) for each token. A teacher adds p·S with S = Σ q_k to the
/// gradient and subtracts q_k at its own tokens ([`pulls`]). The uniform distribution adds p and subtracts 1 / V everywhere.
pub(super) fn gradient_inputs(stats: &HeadStats, g: &TokenGrads, compared: Option<Compared>, vocabulary: usize) -> Vec<f32> {
    let of_token = |i: usize| {
        let (pushed, share) = match compared {
            None | Some(Compared::Head(..)) => (0.0, 0.0),
            Some(Compared::Uniform) => (g.full_kl[i], g.full_kl[i] / vocabulary as f32),
            Some(Compared::TopK { teacher: TopK { k, .. }, .. }) => {
                (g.full_kl[i] * stats.pull[i * k..(i + 1) * k].iter().sum::<f32>(), 0.0)
            }
        };
        let (sum, gl, ge) = (stats.log_sums[i], g.log_prob[i], g.entropy[i]);
        [sum.max, sum.rest, gl, ge, ge * stats.tokens.entropy[i] + gl - pushed, share]
    };
    (0..stats.log_sums.len()).flat_map(of_token).collect()
}

/// The values of [`REFERENCE_INPUTS`](super::super::cube::head_compared::REFERENCE_INPUTS) for each token.
pub(super) fn reference_inputs(stats: &HeadStats, g: &TokenGrads) -> Vec<f32> {
    let of_tokens = stats.reference.iter().zip(g.full_kl.iter().zip(&stats.part));
    of_tokens.flat_map(|(sum, (&gd, &part))| [sum.max, sum.rest, gd, part]).collect()
}

/// The amounts that are subtracted from the gradients at the teacher's ids, each logit once. Masked entries may repeat an id.
pub(super) fn pulls(teacher: &TopK, tokens: &Range<usize>, stats: &HeadStats, g: &TokenGrads) -> Vec<Pull> {
    let mut all: Vec<Pull> = Vec::new();
    for (row, token) in tokens.clone().enumerate() {
        let pulls = &stats.pull[token * teacher.k..(token + 1) * teacher.k];
        let mut pulls: Vec<(u32, f32)> = teacher.ids(token).iter().copied().zip(pulls.iter().copied()).collect();
        pulls.retain(|(_, pull)| *pull != 0.0);
        pulls.sort_by_key(|(id, _)| *id);
        let of_ids = pulls.chunk_by(|a, b| a.0 == b.0);
        all.extend(of_ids.map(|same| Pull {
            row: row as u32,
            id: same[0].0,
            amount: g.full_kl[token] * same.iter().map(|(_, pull)| pull).sum::<f32>(),
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_logit_is_pulled_twice() {
        let teacher = TopK { k: 4, ids: vec![0, 0, 0, 0, 7, 0, 7, 3], log_probs: vec![0.0; 8] };
        let stats = HeadStats { pull: vec![0.0, 0.0, 0.0, 0.0, 0.25, 0.0, 0.5, 0.125], ..HeadStats::default() };
        let g = TokenGrads { full_kl: vec![1.0, 2.0], ..TokenGrads::default() };
        let [third, seventh] = [(3, 0.25), (7, 1.5)].map(|(id, amount)| Pull { row: 1, id, amount });
        assert_eq!(pulls(&teacher, &(0..2), &stats, &g), [third, seventh]);
        assert_eq!(pulls(&teacher, &(0..1), &stats, &g), []);
    }
}
