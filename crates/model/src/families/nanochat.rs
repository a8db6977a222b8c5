//! NanoChat (`NanoChatForCausalLM`): norms without parameters, also behind the embedding and over rotated queries and keys, a
//! squared ReLU, soft-capped logits. Positions turn the other way.

use super::Family;
use crate::config::{DecoderConfig, NormKind, Positions, QkNorm};
use crate::naming::{Naming, PLAIN};
use crate::rope::RopeConfig;

pub(super) const FAMILY: Family = Family {
    model_type: "nanochat",
    class: "NanoChat",
    doc: "NanoChat: norms without parameters, a squared ReLU without a gate, soft-capped logits",
    read: |config| {
        let bias = config.bool_or("attention_bias", false)?;
        let common = config.gated(config.kv_heads()?)?;
        let positions = match common.positions {
            Positions::Rotary(rope) => Positions::Rotary(RopeConfig { reversed: true, ..rope }),
            Positions::Learned => Positions::Learned,
        };
        Ok(DecoderConfig {
            norm: NormKind::PlainRms,
            embedding_norm: true,
            positions,
            activation: config.act_or("hidden_act", "relu2")?,
            gated: false,
            qk_norm: QkNorm::AfterRotation,
            qkv_bias: bias,
            o_bias: bias,
            logit_softcap: config.positive_or("final_logit_softcapping", 15.0)?,
            naming: &NAMING,
            ..common
        })
    },
};

static NAMING: Naming = Naming { replace: &[(".mlp.up_proj.", ".mlp.fc1."), (".mlp.down_proj.", ".mlp.fc2.")], ..PLAIN };
