//! Mixtures whose experts lie in groups, with shared experts and dense layers before the first mixture (DeepSeek, GLM-4.5).

use anyhow::{Context, Result, ensure};

use super::mixture_config::{MixtureConfig, RouterConfig, SharedExpert};
use crate::hf_reader::HfReader;

/// The values that transformers assumes for missing keys of a family.
pub(crate) struct GroupedDefaults {
    /// `n_group` and `topk_group`.
    pub(crate) groups: (usize, usize),
    /// `first_k_dense_replace`
    pub(crate) dense: usize,
    /// `n_shared_experts`
    pub(crate) shared: usize,
    /// `routed_scaling_factor`
    pub(crate) scale: f64,
}

impl HfReader<'_> {
    /// Reads the mixtures of a model of `layers` layers: their sizes, groups, shared experts and layers. Callers set the scores of
    /// experts and of groups.
    ///
    /// # Errors
    /// If groups do not divide the experts, or the chosen groups have fewer experts than a token.
    pub(crate) fn grouped_mixture(&self, layers: usize, defaults: &GroupedDefaults) -> Result<MixtureConfig> {
        let mixture = self.mixture(&["n_routed_experts", "num_local_experts"], "moe_intermediate_size", layers)?;
        let (groups, chosen) = (self.usize_or("n_group", defaults.groups.0)?, self.usize_or("topk_group", defaults.groups.1)?);
        ensure!(
            groups > 0 && mixture.experts.is_multiple_of(groups) && (1..=groups).contains(&chosen),
            "`n_group` is {groups} and `topk_group` {chosen}; groups must divide the {} experts",
            mixture.experts
        );
        ensure!(
            mixture.top_k <= chosen * (mixture.experts / groups),
            "`topk_group` is {chosen}: its groups have fewer experts than the {} of a token",
            mixture.top_k
        );
        let dense = self.usize_or("first_k_dense_replace", defaults.dense)?;
        let shared = self.usize_or("n_shared_experts", defaults.shared)?.checked_mul(mixture.intermediate_size);
        let shared = shared.filter(|size| *size <= 1 << 40).context("`n_shared_experts` is too large")?;
        Ok(MixtureConfig {
            router: RouterConfig {
                groups: (groups > 1).then_some((groups, chosen)),
                scale: self.f64_or("routed_scaling_factor", defaults.scale)?,
                ..mixture.router
            },
            shared: (shared > 0).then_some(SharedExpert { intermediate_size: shared, gated: false }),
            layers: (0..layers).map(|layer| layer >= dense).collect(),
            next_token_layers: self.usize_or("num_nextn_predict_layers", 0)?,
            ..mixture
        })
    }
}
