//! Falcon-H1 (`FalconH1ForCausalLM`): every layer has both attention and Mamba-2, whose results are added, with factors on the
//! results of most projections.

use anyhow::{Context, Result, ensure};

use super::Family;
use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;
use crate::layer_shape::ParallelMixers;
use crate::linear_attention::{MambaNorm, MambaShape, RecurrentKind, RecurrentLayers};
use crate::naming::{Naming, PLAIN};

pub(super) const FAMILY: Family = Family {
    model_type: "falcon_h1",
    class: "FalconH1",
    doc: "Falcon-H1: attention and Mamba-2 in every layer, added, with factors on projections",
    read: |config| {
        // Keys of published files that transformers does not read.
        config.unused(&[
            "mlp_expansion_factor",
            "num_logits_to_keep",
            "time_step_floor",
            "time_step_max",
            "time_step_min",
            "time_step_rank",
        ]);
        config.only("mamba_use_mlp", true.into())?;
        let bias = config.bool_or("attention_bias", false)?;
        let kv_heads = config.heads_or_null("num_key_value_heads", Some(8))?;
        let common = config.llama_like(kv_heads.map_or_else(|| config.usize("num_attention_heads"), Ok)?)?;
        let factor = |key: &str| config.f64_or(key, 1.0);
        let (into, keys) = (factor("attention_in_multiplier")?, factor("key_multiplier")?);
        // Without biases, a factor on the input of attention is its square on the scores, and itself on the result.
        ensure!(
            !bias || into == 1.0 && keys == 1.0,
            "`attention_bias` with `attention_in_multiplier` or `key_multiplier` is not supported"
        );
        let some = |factor: f64| (factor != 1.0).then_some(factor as f32);
        let mlp = factors::<2>(config, "mlp_multipliers")?;
        Ok(DecoderConfig {
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            qkv_bias: bias,
            o_bias: bias,
            mlp_bias: config.bool_or("mlp_bias", false)?,
            mlp_factors: (mlp != [1.0; 2]).then_some(mlp),
            attention_scale: some(keys * into * into).map(|scale| scale / (common.head_dim as f32).sqrt()),
            embedding_scale: some(factor("embedding_multiplier")?),
            logit_scale: some(factor("lm_head_multiplier")?),
            parallel: Some(ParallelMixers {
                attention: (into * factor("attention_out_multiplier")?) as f32,
                recurrence: factor("ssm_out_multiplier")? as f32,
            }),
            recurrent_layers: Some(RecurrentLayers {
                layers: vec![true; common.num_hidden_layers],
                kind: RecurrentKind::Mamba(mamba(config, common.hidden_size)?),
            }),
            naming: &NAMING,
            ..common
        })
    },
};

static NAMING: Naming = Naming {
    replace: &[
        ("model.norm.", "model.final_layernorm."),
        (".post_attention_layernorm.", ".pre_ff_layernorm."),
        (".mlp.", ".feed_forward."),
        (".mamba.a_log", ".mamba.A_log"),
        (".mamba.skip", ".mamba.D"),
    ],
    ..PLAIN
};

fn mamba(config: &HfReader, hidden: usize) -> Result<MambaShape> {
    let expanded = config.expanded(hidden)?;
    let values = config.heads_or_null("mamba_d_ssm", Some(1024))?.unwrap_or(expanded);
    let shape = config.mamba(values, "`mamba_d_ssm`, or without it `mamba_expand` times the hidden size")?;
    let into = config.f64_or("ssm_in_multiplier", 1.0)? as f32;
    ensure!(into == 1.0 || !shape.bias[0], "`ssm_in_multiplier: {into}` with `mamba_proj_bias` is not supported");
    let before_gate = config.bool_or("mamba_norm_before_gate", true)?;
    Ok(MambaShape {
        bias: [shape.bias[0], config.bool_or("projectors_bias", false)?],
        norm: match (config.bool_or("mamba_rms_norm", false)?, before_gate) {
            (false, _) => MambaNorm::None,
            (true, true) => MambaNorm::BeforeGate,
            (true, false) => MambaNorm::BehindGate,
        },
        factors: factors::<5>(config, "ssm_multipliers")?.map(|factor| factor * into),
        ..shape
    })
}

/// Reads a list of factors; 1 each without it.
fn factors<const N: usize>(config: &HfReader, key: &str) -> Result<[f32; N]> {
    let Some(value) = config.get(key) else { return Ok([1.0; N]) };
    let numbers =
        value.as_array().and_then(|items| items.iter().map(|item| Some(item.as_f64()? as f32)).collect::<Option<Vec<_>>>());
    let numbers = numbers.and_then(|numbers| <[f32; N]>::try_from(numbers).ok());
    numbers.with_context(|| format!("`{key}` must be {N} numbers, not {value}"))
}
