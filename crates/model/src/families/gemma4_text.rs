//! Gemma 4's text models (`Gemma4ForCausalLM`), dense: sandwich norms with plain weights, larger heads in layers without a window,
//! normalised values, layers that read the keys and values of an earlier one, and inputs of each layer.

use anyhow::{Context, Result, bail, ensure};

use super::Family;
use crate::config::{DecoderConfig, Positions, QkNorm, Residual};
use crate::hf_reader::HfReader;
use crate::layer_shape::{GlobalAttention, LayerInputs};
use crate::rope::{RopeConfig, RopeScaling};

pub(super) const FAMILY: Family = Family {
    model_type: "gemma4_text",
    class: "Gemma4",
    doc: "Gemma 4 (dense, the text part): larger heads without a window, shared keys and values, inputs of each layer",
    read: |config| {
        config.only("enable_moe_block", false.into())?;
        config.unused(&["num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size"]);
        if let Some(value) = config.get("use_bidirectional_attention") {
            // `vision` concerns the tokens of images alone.
            ensure!(value == "vision", "`use_bidirectional_attention: {value}` is not supported (only null and vision)");
        }
        let [full, sliding] = RopeConfig::read_by_layer_type(config, 1e6, (None, 1e4))?;
        let full = match config.get("rope_parameters") {
            Some(_) => full,
            None => RopeConfig { scaling: RopeScaling::Proportional { share: 0.25, factor: 1.0 }, ..full },
        };
        let is_same = full == sliding;
        let head_dim = config.heads_or("head_dim", 256)?;
        let common = DecoderConfig { head_dim, ..config.rotating(config.usize("num_key_value_heads")?, full)? };
        let layers = common.num_hidden_layers;
        let windows = windows(config, layers)?;
        let global = global_attention(config, &common, &windows)?;
        let local_rope = (!is_same || global.head_dim != common.head_dim).then_some(sliding);
        let bias = config.bool_or("attention_bias", false)?;
        let shared_layers = shared_layers(config, &windows)?;
        let decoder = DecoderConfig {
            residual: Residual::Sandwich,
            activation: config.act_or("hidden_activation", "gelu_pytorch_tanh")?,
            qkv_bias: bias,
            o_bias: bias,
            qk_norm: QkNorm::PerHead,
            value_norm: true,
            global_attention: Some(global),
            shared_layers,
            double_wide: config.bool_or("use_double_wide_mlp", false)?,
            layer_inputs: layer_inputs(config, common.vocab_size)?,
            layer_scalars: true,
            local_rope,
            attention_scale: Some(1.0),
            embedding_scale: Some((common.hidden_size as f32).sqrt()),
            logit_softcap: match config.get("final_logit_softcapping") {
                None => None,
                Some(_) => config.positive_or("final_logit_softcapping", 0.0)?,
            },
            tie_word_embeddings: config.bool_or("tie_word_embeddings", true)?,
            windows,
            ..common
        };
        check_scaling(&decoder)?;
        Ok(decoder)
    },
};

/// The windows of layers: five with a window to one without, and the last layer without one, as transformers makes it.
fn windows(config: &HfReader, layers: usize) -> Result<Vec<Option<usize>>> {
    let window = config.window_or(Some(512))?.context("`sliding_window` is null")?;
    let mut windows = config.layers_with_window(layers, HfReader::is_inside(6))?;
    if let Some(last) = windows.last_mut() {
        *last = false;
    }
    Ok(windows.into_iter().map(|slides| slides.then_some(window)).collect())
}

/// The attention of layers without a window. transformers 5.24 writes `per_layer_config`, published files have
/// `global_head_dim` and `num_global_key_value_heads`.
fn global_attention(config: &HfReader, common: &DecoderConfig, windows: &[Option<usize>]) -> Result<GlobalAttention> {
    let keys_are_values = config.bool_or("attention_k_eq_v", false)?;
    let head_dim = config.heads_or("global_head_dim", 512)?;
    let kv_heads = config.heads_or("num_global_key_value_heads", common.num_key_value_heads)?;
    let mut shape = (head_dim, if keys_are_values { kv_heads } else { common.num_key_value_heads });
    if let Some(layers) = config.get("per_layer_config") {
        let layers = layers.as_object().context("`per_layer_config` must map layers to sizes")?;
        let global = |layer: usize| windows[layer].is_none();
        let of_layer = |layer: usize| -> Result<(usize, usize)> {
            let mut shape = (common.head_dim, common.num_key_value_heads);
            let Some(sizes) = layers.get(&layer.to_string()) else { return Ok(shape) };
            let sizes = sizes.as_object().with_context(|| format!("`per_layer_config.{layer}` must be a mapping"))?;
            for (key, value) in sizes {
                let size = value.as_u64().filter(|size| (1..=1 << 20).contains(size)).map(|size| size as usize);
                let size = size.with_context(|| format!("`per_layer_config.{layer}.{key}` is {value}; it must be a size"))?;
                match key.as_str() {
                    "head_dim" => shape.0 = size,
                    "num_key_value_heads" => shape.1 = size,
                    _ => bail!("`per_layer_config.{layer}.{key}` is not supported; supported are head_dim, num_key_value_heads"),
                }
            }
            Ok(shape)
        };
        if let Some(unknown) = layers.keys().find(|key| key.parse().ok().is_none_or(|layer: usize| layer >= windows.len())) {
            bail!("`per_layer_config` names layer {unknown}; the model has {}, counted from 0", windows.len());
        }
        let first = windows.iter().position(Option::is_none).unwrap_or(0);
        shape = of_layer(first)?;
        for layer in 0..windows.len() {
            let expected = if global(layer) { shape } else { (common.head_dim, common.num_key_value_heads) };
            let sizes = of_layer(layer)?;
            ensure!(sizes == expected, "`per_layer_config`: layer {layer} has other heads than the layers of its type");
        }
    }
    let (head_dim, kv_heads) = shape;
    ensure!(
        common.num_attention_heads.is_multiple_of(kv_heads),
        "num_attention_heads {} must be a multiple of the {kv_heads} heads of keys and values in layers without a window",
        common.num_attention_heads
    );
    Ok(GlobalAttention { kv_heads, head_dim, keys_are_values })
}

/// Reads `num_kv_shared_layers`. Each type of layer must have one with its own keys and values.
fn shared_layers(config: &HfReader, windows: &[Option<usize>]) -> Result<usize> {
    let shared = config.usize_or("num_kv_shared_layers", 0)?;
    ensure!(shared < windows.len().max(1), "`num_kv_shared_layers` is {shared}; the model has {} layers", windows.len());
    let (own, others) = windows.split_at(windows.len() - shared);
    let has_source = |window: &Option<usize>| own.iter().any(|other| other.is_some() == window.is_some());
    ensure!(
        others.iter().all(has_source),
        "`num_kv_shared_layers` is {shared}, but a type of layer among the last {shared} has no earlier layer to read from"
    );
    Ok(shared)
}

fn layer_inputs(config: &HfReader, vocabulary: usize) -> Result<Option<LayerInputs>> {
    let width = config.usize_or("hidden_size_per_layer_input", 256)?;
    let vocab_size = config.usize_or("vocab_size_per_layer_input", 262_144)?;
    ensure!(width <= 1 << 20, "`hidden_size_per_layer_input` is {width}; at most 1048576 is allowed");
    ensure!(
        width == 0 || vocab_size >= vocabulary,
        "`vocab_size_per_layer_input` is {vocab_size}, below `vocab_size` {vocabulary}: tokens would have no input of their layers"
    );
    Ok((width > 0).then_some(LayerInputs { vocab_size, width }))
}

/// Refuses scalings that are computed for the heads of layers with a window, where the others have heads of another size.
fn check_scaling(decoder: &DecoderConfig) -> Result<()> {
    let Positions::Rotary(rope) = &decoder.positions else { return Ok(()) };
    let is_general = matches!(rope.scaling, RopeScaling::Default | RopeScaling::Linear { .. } | RopeScaling::Proportional { .. });
    ensure!(
        is_general || decoder.global_head_dim() == decoder.head_dim,
        "this rope type of full_attention is not supported with other heads than those of sliding_attention; supported are \
         default, linear, proportional"
    );
    Ok(())
}
