//! Noise on the embedded tokens of a training pass: NEFTune, Jain et al. 2023, <https://arxiv.org/abs/2310.05914>.

use burn::tensor::{Device, Tensor};

use super::ops::tensor_from_vec;
use burnish_util::rng::Stream;

/// Noise for the sequences of a pass. Each sequence has its own random stream, so the noise does not depend on how a batch is
/// cut.
#[derive(Clone, Debug)]
pub struct EmbeddingNoise {
    /// Noise level: a sequence of L tokens gets uniform noise between ±alpha / √(L·h), where h is the width. L counts real
    /// tokens; transformers' hook also counts padding.
    pub alpha: f64,
    pub seed: u64,
    pub step: u64,
    /// The random stream key of each sequence of the pass, in order.
    pub keys: Vec<[u64; 2]>,
}

/// The rows of a sequence in a pass.
pub(super) struct NoisyRows {
    pub first: usize,
    pub count: usize,
    /// The number of tokens of the sequence, including the last.
    pub tokens: usize,
}

impl EmbeddingNoise {
    /// Returns the noise [rows, width] of a pass with these sequences.
    pub(super) fn draw(&self, sequences: &[NoisyRows], [rows, width]: [usize; 2], device: &Device) -> Tensor<2> {
        let mut noise = vec![0.0; rows * width];
        for (rows, [row, part]) in sequences.iter().zip(&self.keys) {
            let size = self.alpha / ((rows.tokens * width) as f64).sqrt();
            let mut stream = Stream::new(self.seed, "neftune", &[self.step, *row, *part]);
            let of_document = &mut noise[rows.first * width..(rows.first + rows.count) * width];
            of_document.fill_with(|| ((2.0 * stream.uniform() - 1.0) * size) as f32);
        }
        tensor_from_vec(noise, [rows, width], device)
    }
}
