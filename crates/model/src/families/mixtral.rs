//! Mixtral (`MixtralForCausalLM`): the decoder of Mistral, where every layer is a mixture of experts.

use super::Family;
use crate::config::DecoderConfig;
use crate::naming::{Naming, PLAIN};

pub(super) const FAMILY: Family = Family {
    model_type: "mixtral",
    class: "Mixtral",
    doc: "Mixtral: the decoder of Mistral with a mixture of experts in every layer",
    read: |config| {
        let common = config.llama_like(config.usize("num_key_value_heads")?)?;
        let layers = common.num_hidden_layers;
        // With noise on the router's input, the policy that samples would differ from the policy that is trained.
        config.only("router_jitter_noise", 0.0.into())?;
        let windows = match config.get("sliding_window") {
            Some(_) => config.windows(layers, |_| true)?,
            None => vec![None; layers],
        };
        let mixture = config.mixture(&["num_local_experts", "num_experts"], "intermediate_size", layers)?;
        Ok(DecoderConfig { windows, mixture: Some(mixture), naming: &NAMING, ..common })
    },
};

static NAMING: Naming = Naming {
    replace: &[(".mlp.", ".block_sparse_moe."), (".gate_proj.", ".w1."), (".down_proj.", ".w2."), (".up_proj.", ".w3.")],
    ..PLAIN
};
