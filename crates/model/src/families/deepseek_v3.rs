//! DeepSeek-V3 and R1 (`DeepseekV3ForCausalLM`): attention over latent keys, mixtures of experts chosen by biased sigmoids.

use anyhow::{Result, ensure};

use super::Family;
use crate::config::{DecoderConfig, Positions};
use crate::experts::{GroupedDefaults, MixtureConfig, RouterConfig, RouterScores};
use crate::hf_reader::HfReader;
use crate::latent_shape::LatentShape;
use crate::naming::{Naming, PLAIN};
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family =
    Family {
        model_type: "deepseek_v3",
        class: "DeepseekV3",
        doc: "DeepSeek-V3, R1, Moonlight: attention over latent keys and values, mixtures of experts chosen by biased sigmoids",
        read: |config| {
            config.only("scoring_func", "sigmoid".into())?;
            config.only("topk_method", "noaux_tc".into())?;
            let in_pairs = config.bool_or("rope_interleave", true)?;
            let scores = RouterScores::Sigmoid { normalised: config.bool_or("norm_topk_prob", true)? };
            common(config, in_pairs, &GroupedDefaults { groups: (8, 4), dense: 3, shared: 1, scale: 2.5 }, |router| {
                RouterConfig { scores, choice_bias: true, best_of_group: 2, ..router }
            })
        },
    };

/// The configuration that DeepSeek-V2 and V3 share. `router` completes the router.
pub(super) fn common(
    config: &HfReader,
    in_pairs: bool,
    defaults: &GroupedDefaults,
    router: impl Fn(RouterConfig) -> RouterConfig,
) -> Result<DecoderConfig> {
    let (hidden, heads) = (config.usize("hidden_size")?, config.heads("num_attention_heads")?);
    let (kv_heads, layers) = (config.kv_heads()?, config.layers("num_hidden_layers")?);
    ensure!(
        kv_heads == heads,
        "`num_key_value_heads` is {kv_heads}; attention over latent keys has as many as `num_attention_heads`, {heads}"
    );
    // Only the order of a sum depends on it, as in Llama.
    config.only("pretraining_tp", 1.into())?;
    config.only("moe_layer_freq", 1.into())?;
    // transformers computes the first two from other keys. The others belong to the loss of pretraining and to its processes.
    config.unused(&["head_dim", "qk_head_dim", "aux_loss_alpha", "seq_aux", "ep_size"]);
    let latent = LatentShape::read(config, heads, in_pairs)?;
    let mixture = config.grouped_mixture(layers, defaults)?;
    let bias = config.bool_or("attention_bias", false)?;
    Ok(DecoderConfig {
        head_dim: latent.head_dim(),
        norm_eps: config.f64_or("rms_norm_eps", 1e-6)?,
        activation: config.act_or("hidden_act", "silu")?,
        positions: Positions::Rotary(RopeConfig::read_part(config, latent.rotating)?),
        attention_scale: Some((RopeConfig::magnitude(config)?.powi(2) / (latent.key() as f64).sqrt()) as f32),
        qkv_bias: bias,
        o_bias: bias,
        mixture: Some(MixtureConfig { router: router(mixture.router), ..mixture }),
        latent: Some(latent),
        naming: &NAMING,
        ..config.shape(hidden, heads, heads, config.usize("intermediate_size")?, layers)?
    })
}

static NAMING: Naming = Naming {
    replace: &[
        (".latent_attn.", ".self_attn."),
        (".mlp.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"),
        (".mlp.shared_expert.", ".mlp.shared_experts."),
    ],
    ..PLAIN
};
