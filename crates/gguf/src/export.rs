//! Writes the model of a folder as a GGUF file.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::architectures::{self, Architecture};
use super::file::{self, FileTensor};
use super::tensor_names::in_gguf;
use super::tensor_type::TensorType;
use super::{metadata, tokenizer};
use burnish_model::DecoderConfig;
use burnish_model::config::{Positions, Residual};
use burnish_model::hf_config::HfConfig;
use burnish_model::rope::{RopeConfig, RopeScaling};
use burnish_model::weights::WeightFiles;

/// Writes the model and the tokenizer of a folder in transformers' layout to `output`, one tensor at a time. `name` is the model's
/// name in the file.
///
/// # Errors
/// If llama.cpp has no such model or tokenizer, a setting of the model has no place in the file, or a file cannot be read or
/// written.
pub fn write_gguf(folder: &Path, output: &Path, kind: TensorType, name: &str) -> Result<()> {
    let hf = HfConfig::read(folder)?;
    let config = hf.decoder().with_context(|| folder.display().to_string())?;
    let model_type = hf.json["model_type"].as_str().unwrap_or_default();
    let Some(arch) = architectures::find(model_type) else {
        bail!("a model of type {model_type} is not written as a GGUF file; supported are {}", architectures::names());
    };
    if hf.classifier().is_some() {
        bail!("a classifier is not written as a GGUF file: its head has no logits of tokens");
    }
    let mut all = metadata::of_model(name, arch, &config, kind)?;
    all.extend(tokenizer::of_folder(folder, config.vocab_size)?);
    let files = WeightFiles::open(folder)?;
    let parameters = files.parameters(&config)?;
    let mut tensors: Vec<FileTensor> = divisors(&config).into_iter().collect();
    for (name, view) in &parameters {
        let own = in_gguf(name, config.residual == Residual::Sandwich);
        let own = own.with_context(|| format!("tensor `{name}` has no place in a GGUF file"))?;
        let shape = view.shape().to_vec();
        let width = shape.get(1).copied().unwrap_or(1);
        let (offset, heads) = (arch.norm_offset, rotated_heads(arch, &own, &config));
        tensors.push(FileTensor {
            kind: kind.of_shape(&shape),
            values: Box::new(move || {
                let values = view.values().with_context(|| format!("tensor `{name}`"))?;
                Ok(match heads {
                    Some(heads) => interleaved(&values, heads, width),
                    None if name.ends_with("norm.weight") => values.iter().map(|x| x + offset).collect(),
                    None => values,
                })
            }),
            name: own,
            shape,
        });
    }
    if kind == TensorType::Q8_0
        && let Some(tensor) = tensors.iter().find(|tensor| tensor.kind == TensorType::F16)
    {
        tracing::warn!("tensors with rows that 32 does not divide are float16, such as `{}`", tensor.name);
    }
    file::write(output, &all, &tensors)
}

/// Returns the number of heads whose rows llama.cpp orders otherwise, if the tensor is such a matrix.
fn rotated_heads(arch: &Architecture, own: &str, config: &DecoderConfig) -> Option<usize> {
    let is = |part: &str| own.contains(&format!(".{part}."));
    match (arch.interleaved, is("attn_q"), is("attn_k")) {
        (true, true, _) => Some(config.num_attention_heads),
        (true, _, true) => Some(config.num_key_value_heads),
        _ => None,
    }
}

/// Orders the rows of each head so that the two dimensions that rotate together are neighbours: row i of the first half, then row i
/// of the second. `width`: the values of a row.
fn interleaved(values: &[f32], heads: usize, width: usize) -> Vec<f32> {
    let of_head = |head: &[f32]| -> Vec<f32> {
        let (first, second) = head.split_at(head.len() / 2);
        first.chunks(width).zip(second.chunks(width)).flat_map(|(a, b)| [a, b].concat()).collect()
    };
    values.chunks(values.len() / heads).flat_map(of_head).collect()
}

/// Returns the tensor of the divisors of rotary frequencies, with the scaling of Llama 3.
fn divisors(config: &DecoderConfig) -> Option<FileTensor<'static>> {
    let Positions::Rotary(rope) = &config.positions else { return None };
    let RopeScaling::Llama3 { .. } = &rope.scaling else { return None };
    let unscaled = RopeConfig { scaling: RopeScaling::Default, ..rope.clone() };
    let pairs = unscaled.inverse_frequencies(config.head_dim).into_iter().zip(rope.inverse_frequencies(config.head_dim));
    let divisors: Vec<f32> = pairs.map(|(plain, scaled)| plain / scaled).collect();
    Some(FileTensor {
        name: "rope_freqs.weight".to_owned(),
        shape: vec![divisors.len()],
        kind: TensorType::F32,
        values: Box::new(move || Ok(divisors.clone())),
    })
}

#[cfg(test)]
mod tests {
    use super::interleaved;

    #[test]
    fn halves_of_a_head_become_neighbours() {
        // Two heads of four rows with two values each.
        let values: Vec<f32> = (0..16).map(|x| x as f32).collect();
        let expected = [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0, 12.0, 13.0, 10.0, 11.0, 14.0, 15.0];
        assert_eq!(interleaved(&values, 2, 2), expected);
    }
}
