//! A decoder with one output per token: a critic's value of each state, or a reward model's score of a text. The value before a
//! response token is read at the row that predicts the token, so it depends on the prompt and the response so far.

use std::path::Path;

use anyhow::Result;
use burn::tensor::{Device, Tensor};

use super::causal_lm::{CausalLm, Init};
use super::config::DecoderConfig;
use super::gradients::Gradients;
use super::hf_config::{Classifier, HfConfig};
use super::labels::{HeadInit, NewHead};
use super::ops::{tensor_from_vec, to_host};
use super::readout::Readout;
use super::sequence::Sequence;
use super::token_stats::Layout;

impl HfConfig {
    /// Returns the decoder that this config describes, with the head of its one-label classifier. If `fresh`, a causal language
    /// model gets the head of a token classifier.
    ///
    /// # Errors
    /// The errors of [`labels_decoder`](Self::labels_decoder).
    pub fn scalar_decoder(&self, fresh: bool) -> Result<DecoderConfig> {
        self.labels_decoder(1, fresh.then_some(Classifier::Tokens))
    }
}

impl CausalLm {
    /// Loads a folder of a token or sequence classifier with one label. With the seed of a `fresh_head`, the folder may hold a
    /// causal language model. Its head is then replaced by one drawn from N(0, initializer_range) with bias 0, as in
    /// transformers' `AutoModelForTokenClassification`.
    ///
    /// # Errors
    /// The errors of [`load_labels`](Self::load_labels).
    pub fn load_scalar(folder: &Path, init: Init, fresh_head: Option<u64>, device: &Device) -> Result<Self> {
        Self::load_scalar_as(folder, HfConfig::read(folder)?, init, fresh_head, device)
    }

    /// Does what [`load_scalar`](Self::load_scalar) does, with `hf` in place of the folder's config.json.
    ///
    /// # Errors
    /// The errors of [`load_labels`](Self::load_labels).
    pub fn load_scalar_as(folder: &Path, hf: HfConfig, init: Init, fresh_head: Option<u64>, device: &Device) -> Result<Self> {
        let new = fresh_head.map(|seed| NewHead { kind: Classifier::Tokens, init: HeadInit::Normal, seed });
        Self::load_labels_as(folder, hf, init, 1, new, device)
    }

    /// Returns the value of the state before every response token, in the order of the sequences, without gradients.
    pub fn values(&self, sequences: &[Sequence]) -> Vec<f32> {
        let layout = Layout::for_sequences(sequences);
        if layout.targets.is_empty() {
            return Vec::new();
        }
        to_host(self.head_rows(&self.predicting_states(&layout), Readout::Labels))
    }

    /// Returns the score of every text, at its last token, without gradients. On the CPU a score does not depend on the other
    /// texts, to the last bit: texts with a common prefix do not share its pass, and matmuls compute each row separately.
    pub fn final_scores(&self, texts: &[&[u32]]) -> Vec<f32> {
        let last: Vec<[usize; 1]> = texts.iter().map(|text| [text.len() - 1]).collect();
        self.scores_at(&texts.iter().zip(&last).map(|(text, last)| (*text, &last[..])).collect::<Vec<_>>(), Readout::Labels)
    }

    /// Returns the outputs at the marked positions of every text, text after text. They are as independent of the other texts as
    /// [`final_scores`](Self::final_scores).
    pub fn scores_at(&self, texts: &[(&[u32], &[usize])], readout: Readout) -> Vec<f32> {
        let layout = Layout::apart(texts);
        if layout.reads() == 0 {
            return Vec::new();
        }
        let model = self.frozen();
        let hidden = model.independent_hidden(model.embed(&layout.ids, &layout.packed.positions()), &layout.packed);
        to_host(self.head_rows(&hidden.select(0, layout.predicting(&self.device)), readout))
    }

    /// Makes one forward and backward pass of a [`trainable`](CausalLm::trainable) model. `loss` maps the
    /// [`values`](Self::values) to d loss / d value. The parameters' gradients are added to `gradients`.
    pub fn value_backward(&self, sequences: &[Sequence], gradients: &mut Gradients, loss: impl FnOnce(&[f32]) -> Vec<f32>) {
        let layout = Layout::for_sequences(sequences);
        if layout.targets.is_empty() {
            loss(&[]);
            return;
        }
        self.through_trunk(&layout, None, gradients, |hidden, gradients| {
            let d = loss(&to_host(self.head_rows(&hidden, Readout::Labels)));
            let d: Tensor<2> = tensor_from_vec(d, [hidden.dims()[0], 1], &self.device);
            self.head_rows_backward(hidden, Readout::Labels, d, gradients)
        });
    }
}
