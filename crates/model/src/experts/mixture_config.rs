//! The shape and switches of mixtures of experts.

use anyhow::{Context, Result, bail, ensure};

use crate::hf_reader::HfReader;
use crate::ops::Act;

/// The scores of experts, and the weights of the chosen ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterScores {
    /// The softmax over all experts is both.
    Softmax,
    /// The softmax over the chosen experts gives the weights: the softmax over all, divided by the sum of the chosen.
    SoftmaxOfChosen,
    /// The sigmoid of each logit is both. If `normalised`, the weights are divided by their sum.
    Sigmoid { normalised: bool },
}

/// The router of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterConfig {
    pub scores: RouterScores,
    /// True if the logits have a bias.
    pub bias: bool,
    /// True if the scores by which experts are chosen have a bias, which is not trained.
    pub choice_bias: bool,
    /// Added to the sum by which sigmoids are divided.
    pub sum_eps: f64,
    /// Groups of consecutive experts: their number, and the number of groups that a token may use.
    pub groups: Option<(usize, usize)>,
    /// The number of best experts whose scores are added up as the score of a group.
    pub best_of_group: usize,
    /// Factor on the weights.
    pub scale: f64,
    /// Coefficient of the load-balancing loss; 0 without it.
    pub aux_loss_coef: f64,
    /// Coefficient of the mean square of the log-sum-exp of the logits; 0 without it.
    pub z_loss_coef: f64,
    /// True if the router is not trained.
    pub frozen: bool,
}

/// The activation of an expert, between gate and up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpertAct {
    /// act(gate) · up
    Glu(Act),
    /// With gate and up clamped to `limit`: gate·σ(alpha·gate)·(up + 1) (gpt-oss).
    Clamped { alpha: f64, limit: f64 },
}

/// An expert that all tokens use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedExpert {
    pub intermediate_size: usize,
    /// True if a sigmoid of a linear function of the token is a factor on its output.
    pub gated: bool,
}

/// The tensors of files that hold the experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertLayout {
    /// One tensor for each matrix of each expert, as published. Files with the tensors of transformers 5's modules are read too:
    /// `gate_up_proj` [experts, 2 · intermediate, h] and `down_proj` [experts, h, intermediate].
    PerExpert,
    /// Only the tensors of the modules, in the shapes above (Granite 4).
    Joined,
    /// `gate_up_proj` [experts, h, 2 · intermediate], with columns of gate and up in turn, and `down_proj` [experts,
    /// intermediate, h], each with a bias (gpt-oss).
    Interleaved,
}

/// The mixtures of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureConfig {
    pub experts: usize,
    /// The number of experts of a token.
    pub top_k: usize,
    /// The width of an expert.
    pub intermediate_size: usize,
    pub act: ExpertAct,
    /// True if the matrices of experts have biases.
    pub bias: bool,
    pub router: RouterConfig,
    pub shared: Option<SharedExpert>,
    /// True for each layer that is a mixture; the others have an MLP.
    pub layers: Vec<bool>,
    pub layout: ExpertLayout,
    /// The number of layers in files after the last one of the model, which predict further tokens and are not read.
    pub next_token_layers: usize,
}

impl MixtureConfig {
    /// The number of layers that are mixtures.
    pub fn count(&self) -> usize {
        self.layers.iter().filter(|is_mixture| **is_mixture).count()
    }
}

impl HfReader<'_> {
    /// Reads the keys that all mixtures have: the number of experts under one of the keys `experts`, and the size of an expert
    /// under `intermediate`. Callers change the fields that differ.
    pub(crate) fn mixture(&self, experts: &[&str], intermediate: &str, layers: usize) -> Result<MixtureConfig> {
        let key = experts.iter().find(|key| self.get(key).is_some()).unwrap_or(&experts[0]);
        let (count, top_k) = (self.heads(key)?, self.heads("num_experts_per_tok")?);
        ensure!(top_k <= count, "`num_experts_per_tok` is {top_k}, but `{key}` is {count}");
        ensure!(u32::try_from(count).is_ok(), "`{key}` is {count}; at most {} are allowed", u32::MAX);
        let wants_loss = self.bool_or("output_router_logits", false)?;
        let aux_loss_coef = self.coefficient("router_aux_loss_coef", 0.001)?;
        Ok(MixtureConfig {
            experts: count,
            top_k,
            intermediate_size: self.heads(intermediate)?,
            act: ExpertAct::Glu(self.act_or("hidden_act", "silu")?),
            bias: false,
            router: RouterConfig {
                scores: RouterScores::SoftmaxOfChosen,
                bias: false,
                choice_bias: false,
                sum_eps: 1e-20,
                groups: None,
                best_of_group: 1,
                scale: 1.0,
                aux_loss_coef: if wants_loss { aux_loss_coef } else { 0.0 },
                z_loss_coef: self.coefficient("router_z_loss_coef", 0.0)?,
                frozen: self.router_is_frozen()?,
            },
            shared: None,
            layers: vec![true; layers],
            layout: ExpertLayout::PerExpert,
            next_token_layers: 0,
        })
    }

    /// The scores that `norm_topk_prob` selects.
    pub(crate) fn softmax_scores(&self, default: bool) -> Result<RouterScores> {
        let normalised = self.bool_or("norm_topk_prob", default)?;
        Ok(if normalised { RouterScores::SoftmaxOfChosen } else { RouterScores::Softmax })
    }

    /// The layers that `mlp_only_layers` and `decoder_sparse_step` make mixtures.
    pub(crate) fn sparse_layers(&self, layers: usize) -> Result<Vec<bool>> {
        let step = self.usize_or("decoder_sparse_step", 1)?;
        ensure!(step > 0, "`decoder_sparse_step` is 0; it must be at least 1");
        let dense: Vec<usize> = match self.get("mlp_only_layers") {
            None => Vec::new(),
            Some(value) => {
                let items = value.as_array().context("`mlp_only_layers` must be a list of layers")?;
                let layer = |item: &serde_json::Value| item.as_u64().and_then(|layer| usize::try_from(layer).ok());
                items.iter().map(layer).collect::<Option<_>>().context("`mlp_only_layers` must be a list of layers")?
            }
        };
        if let Some(unknown) = dense.iter().find(|layer| **layer >= layers) {
            bail!("`mlp_only_layers` names layer {unknown}; the model has {layers}, counted from 0");
        }
        Ok((0..layers).map(|layer| !dense.contains(&layer) && (layer + 1).is_multiple_of(step)).collect())
    }

    fn coefficient(&self, key: &str, default: f64) -> Result<f64> {
        match self.f64_or(key, default)? {
            coef if coef >= 0.0 && coef.is_finite() => Ok(coef),
            coef => bail!("`{key}` must be at least 0, not {coef}"),
        }
    }

    /// verl's `moe_config.freeze_moe_router`.
    fn router_is_frozen(&self) -> Result<bool> {
        let Some(settings) = self.get("moe_config") else { return Ok(false) };
        let settings = settings.as_object().context("`moe_config` must be a mapping")?;
        match settings.iter().find(|(key, _)| *key != "freeze_moe_router") {
            Some((key, _)) => bail!("`moe_config.{key}` is unknown; known is freeze_moe_router"),
            None => match settings.get("freeze_moe_router") {
                None => Ok(false),
                Some(value) => {
                    value.as_bool().with_context(|| format!("`moe_config.freeze_moe_router` must be true or false, not {value}"))
                }
            },
        }
    }
}
