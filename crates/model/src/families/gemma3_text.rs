//! Gemma 3's text models (`Gemma3ForCausalLM`): Gemma 2 with normalised queries and keys, two bases of the rotation by the type
//! of layer, and no soft caps by default.

use super::{Family, gemma};
use crate::config::{DecoderConfig, Positions, QkNorm, Residual};
use crate::hf_reader::HfReader;
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "gemma3_text",
    class: "Gemma3Text",
    doc: "Gemma 3 (text): Gemma with sandwich norms, normalised queries and keys, five layers with windows to one without",
    read: |config| {
        // transformers reads `hidden_activation`, and does not read the soft cap of scores.
        config.unused(&["hidden_act", "attn_logit_softcapping"]);
        let [full, sliding] = RopeConfig::read_by_layer_type(config, 1e6, (Some("rope_local_base_freq"), 1e4))?;
        let common = gemma::rotating(config, full)?;
        let pattern = config.usize_or("sliding_window_pattern", 6)?.max(1);
        let scale = config.f64_or("query_pre_attn_scalar", 256.0)?.powf(-0.5);
        let local_rope = (common.positions != Positions::Rotary(sliding.clone())).then_some(sliding);
        Ok(DecoderConfig {
            residual: Residual::Sandwich,
            activation: config.act_or("hidden_activation", "gelu_pytorch_tanh")?,
            qk_norm: QkNorm::PerHead,
            local_rope,
            attention_scale: Some(scale as f32),
            logit_softcap: match config.get("final_logit_softcapping") {
                None => None,
                Some(_) => config.positive_or("final_logit_softcapping", 0.0)?,
            },
            windows: config.windows(common.num_hidden_layers, HfReader::is_inside(pattern))?,
            ..common
        })
    },
};
