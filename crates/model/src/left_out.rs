//! Tensors of a model's files that are not parameters of the network. What is computed in their place must be what they hold; if not,
//! they are named.

use std::collections::BTreeMap;

use safetensors::tensor::TensorView;

use super::config::{DecoderConfig, HeadKind, Positions};
use super::own_head::head_names;
use super::tensor_values::to_f32;

/// The reasons for which a tensor of a file is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LeftOut {
    /// The head of a language model, which the embedding is, or another head replaces.
    Head,
    /// The lower triangle of a causal mask.
    Mask,
    /// The number that masked scores get.
    MaskedScore,
    /// Frequencies of rotary positions.
    Frequencies,
}

/// The largest number for masked scores: e^−10000 is 0.
const MASKED: f32 = -1e4;

impl LeftOut {
    /// `None` for a parameter.
    pub fn of(name: &str, config: &DecoderConfig) -> Option<Self> {
        let is_head = head_names(config.naming).iter().any(|head| name == head);
        if is_head && (config.tie_word_embeddings || config.head != HeadKind::Language) {
            return Some(Self::Head);
        }
        let ending = config.naming.buffers.iter().find(|end| format!(".{name}").ends_with(**end))?;
        Some(match ending {
            _ if ending.ends_with("inv_freq") => Self::Frequencies,
            _ if ending.ends_with("masked_bias") => Self::MaskedScore,
            _ => Self::Mask,
        })
    }

    /// True if the tensor holds what is computed in its place.
    fn is_computed(self, tensor: &TensorView, config: &DecoderConfig) -> bool {
        match self {
            // A tied head equals the embedding, or it is untied; the head of a classifier replaces one that is another.
            Self::Head => config.head == HeadKind::Language,
            Self::Mask => is_lower_triangle(tensor),
            Self::MaskedScore => to_f32(tensor).is_ok_and(|values| values.iter().all(|score| *score <= MASKED)),
            Self::Frequencies => {
                let Positions::Rotary(rope) = &config.positions else { return false };
                let (computed, rounding) = (rope.inverse_frequencies(config.head_dim), 4.0 / 256.0);
                to_f32(tensor).is_ok_and(|stored| {
                    // Files in 16 bits hold them rounded, the smallest ones to steps of 6e-8.
                    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= rounding * b.abs() + 6e-8;
                    stored.len() == computed.len() && stored.iter().zip(&computed).all(is_near)
                })
            }
        }
    }

    /// The reason for leaving out a tensor that is not what is computed.
    fn reason(self) -> &'static str {
        match self {
            Self::Head => "the head of a language model, in whose place this model has another",
            Self::Mask => "a mask that is not the causal one; attention here is causal",
            Self::MaskedScore => "a score for masked tokens that is not near −∞; such tokens take no part here",
            Self::Frequencies => "other frequencies of rotary positions than config.json describes, which are used",
        }
    }
}

/// True for a [1, 1, n, n] or [n, n] tensor whose numbers are not 0 where the column is at most the row, and 0 elsewhere.
fn is_lower_triangle(tensor: &TensorView) -> bool {
    let (&[.., rows, columns], width) = (tensor.shape(), tensor.dtype().bitsize() / 8) else { return false };
    if rows != columns || width == 0 || tensor.data().len() != rows * columns * width {
        return false;
    }
    let is_one = |i: usize| tensor.data()[i * width..(i + 1) * width].iter().any(|byte| *byte != 0);
    (0..rows * columns).all(|i| is_one(i) == (i % columns <= i / columns))
}

/// Takes the tensors that are not parameters of `config` out of a model's files. Returns in words those that are not what is computed
/// in their place, the first of each kind by name.
pub(super) fn leave_out(tensors: &mut BTreeMap<String, TensorView>, config: &DecoderConfig) -> Vec<(LeftOut, String)> {
    let mut named: BTreeMap<LeftOut, Vec<String>> = BTreeMap::new();
    tensors.retain(|name, tensor| {
        let Some(kind) = LeftOut::of(name, config) else { return true };
        if !kind.is_computed(tensor, config) {
            named.entry(kind).or_default().push(name.clone());
        }
        false
    });
    let in_words = |(kind, names): (LeftOut, Vec<String>)| {
        let more = if names.len() > 1 { format!(" (and {} more)", names.len() - 1) } else { String::new() };
        (kind, format!("tensor `{}`{more} is not read: it is {}", names[0], kind.reason()))
    };
    named.into_iter().map(in_words).collect()
}
