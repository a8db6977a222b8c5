//! Tensors in a model's files that are not parameters of the network. They must equal the values that are computed in their
//! place; unequal ones are reported.

use std::collections::BTreeMap;

use safetensors::tensor::TensorView;

use super::config::{DecoderConfig, HeadKind};
use super::tensor_values::to_f32;
use super::untied_head::head_names;
use super::weight_tensor::Tensors;

/// The reason for skipping a tensor of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SkippedTensor {
    /// The head of a language model, if it is tied to the embedding or replaced by another head.
    Head,
    /// The lower triangle of a causal mask.
    Mask,
    /// The score of masked tokens.
    MaskedScore,
    /// Frequencies of rotary positions.
    Frequencies,
    /// A layer after the last, which predicts further tokens.
    NextTokens,
    /// A part of the files that is not the language model: layers that predict further tokens, see images or hear sound.
    OtherPart,
}

/// The first parts of the names of [`SkippedTensor::OtherPart`] (Qwen3-Next, Qwen3.5, Gemma 3 and 4).
const OTHER_PARTS: &[&str] = &[
    "mtp.",
    "model.visual.",
    "vision_tower.",
    "multi_modal_projector.",
    "model.vision_tower.",
    "model.multi_modal_projector.",
    "model.audio_tower.",
    "model.embed_vision.",
    "model.embed_audio.",
];

/// The largest allowed score of masked tokens: e^−10000 is 0.
const MASKED: f32 = -1e4;

impl SkippedTensor {
    /// Classifies a tensor by its name; `None` for a parameter.
    pub(crate) fn classify(name: &str, config: &DecoderConfig) -> Option<Self> {
        let is_head = head_names(config.naming).iter().any(|head| name == head);
        if is_head && (config.tie_word_embeddings || config.head != HeadKind::Language) {
            return Some(Self::Head);
        }
        if next_token_layer(name, config) {
            return Some(Self::NextTokens);
        }
        if OTHER_PARTS.iter().any(|part| name.starts_with(part)) {
            return Some(Self::OtherPart);
        }
        let ending = config.naming.buffers.iter().find(|end| format!(".{name}").ends_with(**end))?;
        Some(match ending {
            _ if ending.ends_with("inv_freq") => Self::Frequencies,
            _ if ending.ends_with("masked_bias") => Self::MaskedScore,
            _ => Self::Mask,
        })
    }

    /// True if the tensor holds the values that are computed in its place.
    fn is_computed(self, tensor: &TensorView, config: &DecoderConfig) -> bool {
        match self {
            // A tied head equals the embedding; a different head would not be tied. A classifier's head replaces a different one.
            Self::Head => config.head == HeadKind::Language,
            Self::NextTokens | Self::OtherPart => false,
            Self::Mask => is_lower_triangle(tensor),
            Self::MaskedScore => to_f32(tensor).is_ok_and(|values| values.iter().all(|score| *score <= MASKED)),
            Self::Frequencies => {
                let Some((rope, dims)) = config.rope() else { return false };
                let (computed, rounding) = (rope.inverse_frequencies(dims), 4.0 / 256.0);
                to_f32(tensor).is_ok_and(|stored| {
                    // Files in 16 bits hold rounded frequencies, the smallest in steps of 6e-8.
                    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= rounding * b.abs() + 6e-8;
                    stored.len() == computed.len() && stored.iter().zip(&computed).all(is_near)
                })
            }
        }
    }

    /// The description of a tensor that differs from the computed values.
    fn reason(self) -> &'static str {
        match self {
            Self::Head => "the head of a language model, which this model replaces by another head",
            Self::OtherPart => {
                "a part that predicts further tokens, sees images or hears sound; only the language model is trained and saved"
            }
            Self::Mask => "a mask that is not the causal one; attention here is causal",
            Self::MaskedScore => "a score for masked tokens that is not near −∞; masked tokens are left out here",
            Self::NextTokens => "in a layer that predicts further tokens, which is not a part of the model, as in transformers",
            Self::Frequencies => "rotary frequencies that differ from those of config.json; the latter are used",
        }
    }
}

impl DecoderConfig {
    /// True for a head in files that the embedding replaces.
    pub fn is_tied_head(&self, tensor: &str) -> bool {
        self.tie_word_embeddings && head_names(self.naming).iter().any(|head| tensor == head)
    }
}

/// True for a tensor of a layer after the last that predicts further tokens.
fn next_token_layer(name: &str, config: &DecoderConfig) -> bool {
    let layers = config.num_hidden_layers..config.num_hidden_layers + config.mixture.as_ref().map_or(0, |m| m.next_token_layers);
    let layer = name.split_once("layers.").and_then(|(_, rest)| rest.split_once('.')?.0.parse().ok());
    layer.is_some_and(|layer: usize| layers.contains(&layer))
}

/// True for a [1, 1, n, n] or [n, n] tensor that is nonzero where column ≤ row, and 0 elsewhere.
fn is_lower_triangle(tensor: &TensorView) -> bool {
    let (&[.., rows, columns], width) = (tensor.shape(), tensor.dtype().bitsize() / 8) else { return false };
    if rows != columns || width == 0 || tensor.data().len() != rows * columns * width {
        return false;
    }
    let is_one = |i: usize| tensor.data()[i * width..(i + 1) * width].iter().any(|byte| *byte != 0);
    (0..rows * columns).all(|i| is_one(i) == (i % columns <= i / columns))
}

/// Removes the tensors that are not parameters of `config`. Returns a message for each kind with tensors that differ from the
/// computed values; it names the first of them.
pub(super) fn skip_tensors(tensors: &mut Tensors, config: &DecoderConfig) -> Vec<(SkippedTensor, String)> {
    let mut named: BTreeMap<SkippedTensor, Vec<String>> = BTreeMap::new();
    tensors.retain(|name, tensor| {
        let Some(kind) = SkippedTensor::classify(name, config) else { return true };
        if !kind.is_computed(tensor, config) {
            named.entry(kind).or_default().push(name.clone());
        }
        false
    });
    let in_words = |(kind, names): (SkippedTensor, Vec<String>)| {
        let more = if names.len() > 1 { format!(" (and {} more)", names.len() - 1) } else { String::new() };
        (kind, format!("tensor `{}`{more} is not read: it is {}", names[0], kind.reason()))
    };
    named.into_iter().map(in_words).collect()
}
