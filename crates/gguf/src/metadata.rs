//! The settings of a model in llama.cpp's terms.

use anyhow::{Result, bail};

use super::architectures::Architecture;
use super::file::Meta;
use super::tensor_type::TensorType;
use burnish_model::DecoderConfig;
use burnish_model::config::Positions;
use burnish_model::rope::RopeScaling;

/// Returns the metadata of a model, without its tokenizer.
///
/// # Errors
/// If the model has a setting that llama.cpp does not have.
pub(crate) fn of_model(name: &str, arch: &Architecture, config: &DecoderConfig, kind: TensorType) -> Result<Vec<(String, Meta)>> {
    let Positions::Rotary(rope) = &config.positions else { bail!("positions without rotation have no place in a GGUF file") };
    if config.activation != arch.activation {
        bail!("config.json: llama.cpp's {} has the activation {:?}, not {:?}", arch.name, arch.activation, config.activation);
    }
    if arch.name == "gemma2" && (config.attention_softcap.is_none() || config.logit_softcap.is_none()) {
        bail!("config.json: llama.cpp's gemma2 always caps scores and logits, so both caps must be set");
    }
    if arch.name == "gemma2" && !alternates(arch, config) {
        bail!("config.json: llama.cpp's gemma2 has a window of attention in every second layer, from the first");
    }
    // llama.cpp scales the scores of the largest Gemma 2, which has 46 layers, in another way.
    let is_largest = arch.name == "gemma2" && config.num_hidden_layers == 46;
    let width = if is_largest { config.hidden_size / config.num_attention_heads } else { config.head_dim };
    let usual = 1.0 / (width as f32).sqrt();
    if config.attention_scale.is_some_and(|scale| (scale - usual).abs() > 1e-6 * usual) {
        bail!("config.json: llama.cpp's {} divides scores by √{width}; query_pre_attn_scalar must be {width}", arch.name);
    }
    let number = |x: usize| Meta::U32(x as u32);
    let mut all = vec![
        ("general.architecture".to_owned(), arch.name.into()),
        ("general.name".to_owned(), name.into()),
        ("general.file_type".to_owned(), Meta::U32(kind.file_type())),
        ("general.quantization_version".to_owned(), Meta::U32(2)),
    ];
    let mut own = |key: &str, value: Meta| all.push((format!("{}.{key}", arch.name), value));
    own("vocab_size", number(config.vocab_size));
    own("block_count", number(config.num_hidden_layers));
    own("context_length", number(context_length(arch, config)));
    own("embedding_length", number(config.hidden_size));
    own("feed_forward_length", number(config.intermediate_size));
    own("attention.head_count", number(config.num_attention_heads));
    own("attention.head_count_kv", number(config.num_key_value_heads));
    own("attention.key_length", number(config.head_dim));
    own("attention.value_length", number(config.head_dim));
    own("attention.layer_norm_rms_epsilon", Meta::F32(config.norm_eps as f32));
    own("rope.dimension_count", number(config.head_dim));
    own("rope.freq_base", Meta::F32(rope.theta as f32));
    match &rope.scaling {
        RopeScaling::Default => {}
        RopeScaling::Linear { factor } => {
            own("rope.scaling.type", "linear".into());
            own("rope.scaling.factor", Meta::F32(*factor as f32));
        }
        // A tensor of the file holds the divisor of each frequency.
        RopeScaling::Llama3 { .. } => {}
        other => bail!("config.json: rope scaling {other:?} is not written to GGUF files; supported are default, linear, llama3"),
    }
    if let Some(cap) = config.attention_softcap {
        own("attn_logit_softcapping", Meta::F32(cap));
    }
    if let Some(cap) = config.logit_softcap {
        own("final_logit_softcapping", Meta::F32(cap));
    }
    if alternates(arch, config)
        && let Some(window) = config.windows.first().copied().flatten()
    {
        own("attention.sliding_window", number(window));
    }
    Ok(all)
}

/// True if every second layer has a window of attention, from the first, which llama.cpp knows of Gemma 2.
fn alternates(arch: &Architecture, config: &DecoderConfig) -> bool {
    arch.name == "gemma2" && config.windows.iter().enumerate().all(|(layer, window)| window.is_some() == (layer % 2 == 0))
}

/// Returns the longest sequence. llama.cpp has no window of attention for most families, so it must not be longer than the window.
fn context_length(arch: &Architecture, config: &DecoderConfig) -> usize {
    let windows: Vec<usize> = config.windows.iter().flatten().copied().collect();
    match windows.iter().min() {
        Some(window) if !alternates(arch, config) => {
            tracing::warn!("windows of attention are not written to GGUF files of {}: the context is {window} tokens", arch.name);
            (*window).min(config.max_position_embeddings)
        }
        _ => config.max_position_embeddings,
    }
}
