//! Cohere's Command R7B and Command A (`Cohere2ForCausalLM`): attention and MLP in parallel behind one LayerNorm without bias.
//! Layers with a window rotate in pairs of neighbours; the others do not rotate.

use anyhow::ensure;

use super::Family;
use crate::config::{DecoderConfig, NormKind, Residual};
use crate::hf_reader::HfReader;
use crate::naming::{Naming, PLAIN};

pub(super) const FAMILY: Family = Family {
    model_type: "cohere2",
    class: "Cohere2",
    doc: "Command R7B and Command A: parallel attention and MLP, LayerNorm without bias, layers without a window not rotating",
    read: |config| {
        // Keys of published files that transformers does not read.
        config.unused(&["layer_switch", "order_of_interleaved_layers", "use_embedding_sharing", "use_parallel_embedding"]);
        config.only("use_gated_activation", true.into())?;
        config.only("use_parallel_block", true.into())?;
        config.only("use_qk_norm", false.into())?;
        config.only("rotary_pct", 1.0.into())?;
        config.only("position_embedding_type", "rope_gptj".into())?;
        let bias = config.bool_or("attention_bias", false)?;
        let scale = config.f64_or("logit_scale", 0.0625)?;
        let common = config.llama_like(config.kv_heads()?)?;
        let head_dim = common.hidden_size / common.num_attention_heads;
        ensure!(
            common.head_dim == head_dim,
            "`head_dim` is {}; in this family it is hidden_size / num_attention_heads",
            common.head_dim
        );
        let pattern = config.usize_or("sliding_window_pattern", 4)?.max(1);
        let windows = config.windows(common.num_hidden_layers, HfReader::is_inside(pattern))?;
        Ok(DecoderConfig {
            norm: NormKind::LayerWithoutBias,
            norm_eps: config.f64_or("layer_norm_eps", 1e-5)?,
            residual: Residual::ParallelOneNorm,
            qkv_bias: bias,
            o_bias: bias,
            logit_scale: (scale != 1.0).then_some(scale as f32),
            tie_word_embeddings: config.bool_or("tie_word_embeddings", true)?,
            rotates: windows.iter().map(Option::is_some).collect(),
            windows,
            naming: &NAMING,
            ..common
        })
    },
};

static NAMING: Naming = Naming { rotates_pairs: true, ..PLAIN };
