//! Qwen3.5 (`Qwen3_5ForCausalLM`, the text part of published models): Qwen3-Next with an MLP in every layer, and four matrices
//! for the projections of a delta net.

use super::{Family, qwen3_next};

pub(super) const FAMILY: Family = Family {
    model_type: "qwen3_5_text",
    class: "Qwen3_5",
    doc: "Qwen3.5 (dense, the text part): gated delta nets, with gated attention in every fourth layer",
    read: |config| {
        // The published files say how many layers predict further tokens; their tensors are not read.
        config.unused(&["mtp_num_hidden_layers", "mtp_use_dedicated_embeddings", "mlp_only_layers"]);
        qwen3_next::common(config, false, false)
    },
};
