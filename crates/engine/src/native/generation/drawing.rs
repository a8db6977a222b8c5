//! The place where the next tokens are drawn: on the device that computed their logits, or on the host.

use burn::tensor::Tensor;
use rayon::prelude::*;

use burnish_model::ops::{index, to_host};

use super::state::{GenerationState, Logits};
use crate::native::running::Running;
use crate::sampling::{DrawRow, draws_on_device, sample_on_device};
use burnish_rollout::TurnSettings;

impl GenerationState<'_> {
    /// Returns the logits of hidden states [rows, h] in the place where tokens are drawn. Copying all logits from a GPU would
    /// take longer than computing them.
    pub(super) fn logits_of(&mut self, hidden: Tensor<2>) -> Logits {
        let draws_there = draws_on_device(&self.model.device, self.model.config.vocab_size);
        if draws_there && self.settings.rules.is_none_or(|rules| rules.allowed.is_none()) {
            return Logits::OnDevice(self.model.logits_on_device(hidden));
        }
        let mut logits = std::mem::take(&mut self.logits);
        self.model.logits(hidden, &mut logits);
        Logits::OnHost(logits)
    }

    /// Draws the next token of every running sequence whose tokens are all computed, from its hidden state [rows, h].
    pub(super) fn draw(&mut self, hidden: Tensor<2>) {
        let (settings, vocab, logits) = (self.settings, self.model.config.vocab_size, self.logits_of(hidden));
        let mut drawing: Vec<&mut Running> = self.running.iter_mut().filter(|sequence| sequence.behind() == 0).collect();
        match logits {
            Logits::OnDevice(logits) => draw_on_device(&mut drawing, logits, settings),
            Logits::OnHost(mut logits) => {
                drawing.into_par_iter().zip(logits.par_chunks_exact_mut(vocab)).for_each(|(sequence, logits)| {
                    let u = sequence.uniform();
                    sequence.draw(logits, settings, u);
                });
                self.logits = logits;
            }
        }
    }
}

/// Draws the next token of each of these sequences from its logits [rows, vocabulary].
pub(crate) fn draw_on_device(drawing: &mut [&mut Running], logits: Tensor<2>, settings: &TurnSettings) {
    let u: Vec<f64> = drawing.iter_mut().map(|sequence| sequence.uniform()).collect();
    let forbidden: Vec<Vec<u32>> = drawing.iter().map(|sequence| sequence.forbidden(settings)).collect();
    let rows = drawing.iter().zip(&forbidden).zip(&u);
    let rows: Vec<DrawRow> = rows.map(|((sequence, forbidden), &u)| sequence.row(settings, forbidden, u)).collect();
    // Scores are computed on the host, so only their rows are copied. Another handle on all logits would make the draw copy them.
    let scored: Vec<usize> = (0..drawing.len()).filter(|&row| drawing[row].scored() > 0).collect();
    let (vocab, device) = (logits.dims()[1], logits.device());
    let kept = (!scored.is_empty()).then(|| logits.clone().select(0, index(scored.iter().copied(), &device)));
    let drawn = sample_on_device(logits, &rows);
    drawing.iter_mut().zip(drawn).for_each(|(sequence, drawn)| sequence.push(drawn, settings));
    let kept = kept.map(to_host).unwrap_or_default();
    for (row, logits) in scored.into_iter().zip(kept.chunks_exact(vocab)) {
        drawing[row].add_score(logits);
    }
}
