//! GLM-4-0414 and GLM-Z1 (`Glm4ForCausalLM`): GLM with sandwich norms.

use super::{Family, glm};
use crate::config::{DecoderConfig, Residual};
use crate::naming::{Naming, PLAIN};

pub(super) const FAMILY: Family = Family {
    model_type: "glm4",
    class: "Glm4",
    doc: "GLM-4-0414 and GLM-Z1: GLM with sandwich norms",
    read: |config| Ok(DecoderConfig { residual: Residual::Sandwich, naming: &NAMING, ..glm::common(config)? }),
};

static NAMING: Naming = Naming {
    // The first replacement must precede the second: both names occur on both sides.
    replace: &[
        (".post_attention_layernorm.", ".post_self_attn_layernorm."),
        (".pre_feedforward_layernorm.", ".post_attention_layernorm."),
        (".post_feedforward_layernorm.", ".post_mlp_layernorm."),
    ],
    fused_gate_up: true,
    rotates_pairs: true,
    ..PLAIN
};
