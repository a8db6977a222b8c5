//! DeepSeek-V2 (`DeepseekV2ForCausalLM`): attention over latent keys, mixtures of experts chosen by softmax, and shared experts.

use anyhow::bail;

use super::{Family, deepseek_v3};
use crate::config::DecoderConfig;
use crate::experts::{GroupedDefaults, RouterConfig, RouterScores};

pub(super) const FAMILY: Family = Family {
    model_type: "deepseek_v2",
    class: "DeepseekV2",
    doc: "DeepSeek-V2 and Coder-V2: attention over latent keys and values, mixtures of experts chosen by softmax, in groups or not",
    read: |config| {
        config.only("scoring_func", "softmax".into())?;
        // transformers ignores it, and the published code applies it without the factor on the weights.
        config.only("norm_topk_prob", false.into())?;
        let in_groups = match config.get("topk_method").map(|method| (method, method.as_str())) {
            None | Some((_, Some("greedy"))) => false,
            Some((_, Some("group_limited_greedy"))) => true,
            Some((method, _)) => {
                bail!("`topk_method: {method}` is not supported; supported are greedy and group_limited_greedy")
            }
        };
        let defaults = GroupedDefaults { groups: (1, 1), dense: 0, shared: 2, scale: 1.0 };
        let common = deepseek_v3::common(config, true, &defaults, |router| RouterConfig {
            scores: RouterScores::Softmax,
            groups: router.groups.filter(|_| in_groups),
            ..router
        })?;
        Ok(DecoderConfig { mlp_bias: config.bool_or("mlp_bias", false)?, ..common })
    },
};
