//! Granite 4 (`GraniteMoeHybridForCausalLM`): layers of Mamba-2 between layers of attention, which do not rotate in published
//! hybrids, with the factors of Granite 3. The models without Mamba-2 (Granite 4.0 Micro) rotate. Mixtures (Tiny, Small) have a
//! shared expert.

use anyhow::bail;

use super::{Family, granite};
use crate::config::{DecoderConfig, Positions};
use crate::experts::{ExpertLayout, MixtureConfig, SharedExpert};
use crate::hf_reader::HfReader;
use crate::linear_attention::{RecurrentKind, RecurrentLayers};
use crate::naming::{Naming, PLAIN};
use crate::rope::{RopeConfig, RopeScaling};

pub(super) const FAMILY: Family = Family {
    model_type: "granitemoehybrid",
    class: "GraniteMoeHybrid",
    doc: "Granite 4, dense or with mixtures of experts: layers of Mamba-2, with attention without positions in some layers",
    read: |config| {
        // Keys of published files that transformers does not read.
        config.unused(&["init_method", "time_step_min", "time_step_max"]);
        config.only("normalization_function", "rmsnorm".into())?;
        let (hidden, heads, layers) =
            (config.usize("hidden_size")?, config.heads("num_attention_heads")?, config.layers("num_hidden_layers")?);
        let shared = config.heads_or("shared_intermediate_size", 1024)?;
        let is_recurrent =
            config.kinds_of_layers(layers, ["full_attention", "attention"], ["linear_attention", "mamba"], |_| true)?;
        let recurrent = is_recurrent.contains(&true);
        let rotates = match config.get("position_embedding_type") {
            None => false,
            Some(kind) if kind == "nope" => false,
            Some(kind) if kind == "rope" => true,
            Some(kind) => bail!("`position_embedding_type: {kind}` is not supported; supported are rope, nope and null"),
        };
        let bias = config.bool_or("attention_bias", false)?;
        let common = DecoderConfig {
            head_dim: config.head_dim()?,
            norm_eps: config.f64_or("rms_norm_eps", 1e-6)?,
            positions: Positions::Rotary(if rotates { RopeConfig::read_whole(config, 10_000.0)? } else { unused_rope(config) }),
            rotates: vec![rotates; layers],
            activation: config.act_or("hidden_act", "silu")?,
            qkv_bias: bias,
            o_bias: bias,
            recurrent_layers: match recurrent {
                true => Some(RecurrentLayers {
                    layers: is_recurrent,
                    kind: RecurrentKind::Mamba(config.mamba(config.expanded(hidden)?, "`mamba_expand` times the hidden size")?),
                }),
                false => None,
            },
            naming: &NAMING,
            ..config.shape(hidden, heads, config.kv_heads()?, shared, layers)?
        };
        if !recurrent {
            config.unused(MAMBA);
        }
        let mixture = match config.usize_or("num_local_experts", 8)? {
            0 => {
                config.unused(&["intermediate_size", "num_experts_per_tok"]);
                None
            }
            _ => Some(MixtureConfig {
                shared: Some(SharedExpert { intermediate_size: shared, gated: false }),
                layout: ExpertLayout::Joined,
                ..config.mixture(&["num_local_experts"], "intermediate_size", layers)?
            }),
        };
        granite::scaled(config, DecoderConfig { mixture, ..common })
    },
};

/// Keys of Mamba-2, which the files of models without such layers have too.
const MAMBA: &[&str] = &[
    "mamba_chunk_size",
    "mamba_conv_bias",
    "mamba_d_conv",
    "mamba_d_head",
    "mamba_d_state",
    "mamba_expand",
    "mamba_n_groups",
    "mamba_n_heads",
    "mamba_proj_bias",
    "time_step_limit",
];

static NAMING: Naming = Naming {
    replace: &[
        (".mlp.shared_expert.gate_up_proj.", ".shared_mlp.input_linear."),
        (".mlp.shared_expert.down_proj.", ".shared_mlp.output_linear."),
        (".mlp.gate_up_proj.", ".shared_mlp.input_linear."),
        (".mlp.down_proj.", ".shared_mlp.output_linear."),
        (".mlp.gate.", ".block_sparse_moe.router.layer."),
        (".mamba.a_log", ".mamba.A_log"),
        (".mamba.skip", ".mamba.D"),
    ],
    fused_gate_up: true,
    experts: ".block_sparse_moe",
    joined_experts: ["input_linear.weight", "output_linear.weight"],
    ..PLAIN
};

/// A rotation for a model that does not rotate, whose files may describe one.
fn unused_rope(config: &HfReader) -> RopeConfig {
    config.unused(&["rope_parameters", "rope_scaling", "rope_theta"]);
    RopeConfig { theta: 10_000.0, partial: 1.0, scaling: RopeScaling::Default, attention_factor: 1.0, reversed: false }
}
