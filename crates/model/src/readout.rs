//! Reads the head at some tokens of a text: the labels of a classifier, or the logits of chosen tokens. The head runs only on
//! those rows, outside any graph. Its gradient goes back through the trunk as in [`super::token_stats`].

use burn::tensor::Tensor;

use super::causal_lm::CausalLm;
use super::config::HeadKind;
use super::gradients::Gradients;
use super::ops::{add_rows, index, tensor_from_vec, to_host};
use super::token_stats::{EMBEDDING, HEAD, Layout, MarkedSequence};

/// The name of a classifier's bias.
const BIAS: &str = "lm_head.bias";
/// The largest number of logits held at once, 16 MB.
const LOGITS: usize = 4 << 20;

/// The outputs of the head that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readout<'a> {
    /// The labels of a classifier.
    Labels,
    /// The logits of these tokens of a language model.
    Tokens(&'a [u32]),
    /// The logits of all tokens of a language model.
    Vocabulary,
}

impl CausalLm {
    /// Reads the head at every mark, in the order of the texts, without gradients. `see` gets the values of consecutive marks,
    /// [marks, values], and is called several times only for a whole vocabulary.
    pub fn read(&self, marked: &[MarkedSequence], readout: Readout, mut see: impl FnMut(&[f32])) {
        let layout = Layout::reading(marked);
        if layout.reads() > 0 {
            let hidden = self.predicting_states(&layout);
            for rows in self.chunks(&hidden, readout) {
                see(&to_host(self.head_rows(&rows, readout)));
            }
        }
    }

    /// Makes one forward and backward pass of a [`trainable`](CausalLm::trainable) model. `loss` is called as
    /// [`read`](Self::read) calls `see`, and maps the values to d loss / d value. The parameters' gradients are added to
    /// `gradients`.
    pub fn read_backward(
        &self,
        marked: &[MarkedSequence],
        readout: Readout,
        gradients: &mut Gradients,
        mut loss: impl FnMut(&[f32]) -> Vec<f32>,
    ) {
        let layout = Layout::reading(marked);
        if layout.reads() == 0 {
            return;
        }
        self.through_trunk(&layout, None, gradients, |hidden, gradients| {
            let backward = |rows: Tensor<2>| {
                let logits = self.head_rows(&rows, readout);
                let host = to_host(logits.clone());
                let [n, numbers] = logits.dims();
                let mut d = loss(&host);
                if let (Some(cap), true) = (self.config.logit_softcap, readout != Readout::Labels) {
                    d.iter_mut().zip(&host).for_each(|(d, x)| *d *= 1.0 - (x / cap) * (x / cap));
                }
                if let (Some(scale), true) = (self.config.logit_scale, readout != Readout::Labels) {
                    d.iter_mut().for_each(|d| *d *= scale);
                }
                self.head_rows_backward(rows, readout, tensor_from_vec(d, [n, numbers], &self.device), gradients)
            };
            Tensor::cat(self.chunks(&hidden, readout).into_iter().map(backward).collect(), 0)
        });
    }

    /// Cuts the hidden states [n, h] into chunks whose outputs may be held at once.
    fn chunks(&self, hidden: &Tensor<2>, readout: Readout) -> Vec<Tensor<2>> {
        let n = hidden.dims()[0];
        let rows = if readout == Readout::Vocabulary { (LOGITS / self.config.vocab_size).max(1) } else { n };
        (0..n).step_by(rows).map(|start| hidden.clone().narrow(0, start, rows.min(n - start))).collect()
    }

    /// Computes the outputs [n, values] of hidden states [n, h], in f32. A few outputs are computed one by one, so that on the
    /// CPU no row depends on the number of rows.
    ///
    /// # Panics
    /// If labels are requested of a language model, or tokens of a classifier.
    pub(super) fn head_rows(&self, hidden: &Tensor<2>, readout: Readout) -> Tensor<2> {
        let w = self.rows_of_head(readout);
        let y = match readout {
            Readout::Vocabulary => hidden.clone().matmul(w.transpose()),
            _ => {
                let column = |row: usize| (hidden.clone() * w.clone().narrow(0, row, 1)).sum_dim(1);
                Tensor::cat((0..w.dims()[0]).map(column).collect(), 1)
            }
        };
        let y = match self.config.logit_scale {
            Some(scale) if readout != Readout::Labels => y * scale,
            _ => y,
        };
        let bias = self.net.lm_head.as_ref().and_then(|head| head.bias.as_ref());
        match (bias, self.config.logit_softcap) {
            (Some(bias), _) => y + bias.val().inner().unsqueeze(),
            (None, Some(cap)) if readout != Readout::Labels => (y / cap).tanh() * cap,
            _ => y,
        }
    }

    /// Adds the gradients of the head, and returns the gradient of the hidden states [n, h], from the gradient of the outputs [n,
    /// values].
    pub(super) fn head_rows_backward(
        &self,
        hidden: Tensor<2>,
        readout: Readout,
        d: Tensor<2>,
        gradients: &mut Gradients,
    ) -> Tensor<2> {
        let head = self.net.head().val();
        if head.is_require_grad() {
            let d_rows = d.clone().transpose().matmul(hidden);
            let name = if self.net.lm_head.is_some() { HEAD } else { EMBEDDING };
            match readout {
                Readout::Tokens(tokens) => {
                    let sum = gradients.take(name, head.dims(), &self.device);
                    let rows: Vec<usize> = tokens.iter().map(|&id| id as usize).collect();
                    gradients.add(name, add_rows(sum, &rows, d_rows));
                }
                _ => gradients.add(name, d_rows),
            }
            if self.net.lm_head.as_ref().is_some_and(|head| head.bias.is_some()) {
                // The sum of one label has another order than a sum along a dimension.
                let sum: Tensor<1> = if d.dims()[1] == 1 { d.clone().sum() } else { d.clone().sum_dim(0).flatten(0, 1) };
                gradients.add(BIAS, sum);
            }
        }
        d.matmul(self.rows_of_head(readout))
    }

    /// The rows of the head's matrix that produce the outputs, [values, h].
    fn rows_of_head(&self, readout: Readout) -> Tensor<2> {
        let labels = matches!(self.config.head, HeadKind::Classifier { .. });
        assert_eq!(labels, readout == Readout::Labels, "a classifier has labels, a language model has tokens");
        let w = self.net.head().val().inner();
        match readout {
            Readout::Tokens(tokens) => w.select(0, index(tokens.iter().map(|&id| id as usize), &self.device)),
            _ => w,
        }
    }
}
