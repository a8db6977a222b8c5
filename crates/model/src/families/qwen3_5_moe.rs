//! Qwen3.5-MoE (`Qwen3_5MoeForCausalLM`, the text part of published models): Qwen3.5 with a mixture of experts in every layer.

use super::{Family, qwen3_next};
use crate::config::DecoderConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "qwen3_5_moe_text",
    class: "Qwen3_5Moe",
    doc: "Qwen3.5-MoE (the text part): Qwen3.5 with a mixture of experts in every layer",
    read: |config| {
        config.only("norm_topk_prob", true.into())?;
        config.unused(&["mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mlp_only_layers"]);
        let common = qwen3_next::common(config, false, true)?;
        let mixture = qwen3_next::mixture(config, common.num_hidden_layers)?;
        Ok(DecoderConfig { mixture: Some(mixture), ..common })
    },
};
