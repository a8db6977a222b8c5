//! The feed-forward part of a block: an MLP or a mixture of experts.

use std::sync::Arc;

use burn::module::{Content, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, FloatDType, Tensor, activation};

use super::mixture_config::{ExpertAct, MixtureConfig};
use super::router;
use crate::mlp::Mlp;
use crate::ops::{Groups, combine_groups, gather_groups, glu, index, to_host};
use crate::pass::{Linear, Lora, Pass};

/// The feed-forward part of a block. Both kinds have the path `mlp` in a network.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one value per layer: its size does not matter")]
pub enum FeedForward {
    Dense(Mlp),
    Mixture(Mixture),
}

/// A mixture of experts.
#[derive(Module, Debug)]
pub struct Mixture {
    /// The router: [experts, h].
    pub gate: Linear,
    /// Added to the scores by which experts are chosen; not trained. `[experts]`
    pub(crate) e_score_correction_bias: Option<Param<Tensor<1>>>,
    pub experts: Experts,
    pub(crate) shared_expert: Option<Mlp>,
    /// [1, h]
    pub(crate) shared_expert_gate: Option<Linear>,
}

/// The matrices of all experts.
#[derive(Module, Debug)]
pub struct Experts {
    /// [experts, intermediate, h]
    pub gate_proj: Param<Tensor<3>>,
    /// [experts, intermediate, h]
    pub up_proj: Param<Tensor<3>>,
    /// [experts, h, intermediate]
    pub down_proj: Param<Tensor<3>>,
    /// [experts, intermediate]
    pub(crate) gate_proj_bias: Option<Param<Tensor<2>>>,
    /// [experts, intermediate]
    pub(crate) up_proj_bias: Option<Param<Tensor<2>>>,
    /// [experts, h]
    pub(crate) down_proj_bias: Option<Param<Tensor<2>>>,
}

impl FeedForward {
    /// x [n, h] -> [n, h], in the pass's dtype.
    pub(crate) fn forward(&self, x: Tensor<2>, pass: &Pass) -> Tensor<2> {
        match (self, &pass.config.mixture) {
            (Self::Mixture(mixture), Some(config)) => mixture.forward(x, pass, config),
            (Self::Dense(mlp), _) => mlp.forward(x, pass),
            (Self::Mixture(_), None) => unreachable!("a mixture is built from its configuration"),
        }
    }

    /// The projections that can have adapters, by their names in a block: of an MLP, or of the shared expert of a mixture.
    pub(crate) fn projections(&self) -> Vec<(&'static str, &Linear)> {
        match self {
            Self::Dense(mlp) => in_mlp(mlp, ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]),
            Self::Mixture(mixture) => {
                let names = ["mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj", "mlp.shared_expert.down_proj"];
                let shared = mixture.shared_expert.as_ref().map(|mlp| in_mlp(mlp, names)).unwrap_or_default();
                let gate = mixture.shared_expert_gate.as_ref().map(|gate| ("mlp.shared_expert_gate", gate));
                shared.into_iter().chain(gate).collect()
            }
        }
    }

    /// The places of adapters: of an MLP, or of the shared expert of a mixture.
    pub(crate) fn adapter_slots(&mut self) -> Vec<(&'static str, &mut Option<Lora>)> {
        match self {
            Self::Dense(mlp) => of_mlp(mlp, ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp.gate_up_proj"]),
            Self::Mixture(mixture) => {
                let names = [
                    "mlp.shared_expert.gate_proj",
                    "mlp.shared_expert.up_proj",
                    "mlp.shared_expert.down_proj",
                    "mlp.shared_expert.gate_up_proj",
                ];
                let shared = mixture.shared_expert.as_mut().map(|mlp| of_mlp(mlp, names)).unwrap_or_default();
                let gate = mixture.shared_expert_gate.as_mut().map(|gate| ("mlp.shared_expert_gate", &mut gate.lora));
                shared.into_iter().chain(gate).collect()
            }
        }
    }
}

fn in_mlp<'a>(mlp: &'a Mlp, [gate, up, down]: [&'static str; 3]) -> Vec<(&'static str, &'a Linear)> {
    let gate = mlp.gate_proj.as_ref().map(|projection| (gate, projection));
    gate.into_iter().chain([(up, &mlp.up_proj), (down, &mlp.down_proj)]).collect()
}

fn of_mlp<'a>(mlp: &'a mut Mlp, [gate, up, down, both]: [&'static str; 4]) -> Vec<(&'static str, &'a mut Option<Lora>)> {
    let gate = mlp.gate_proj.as_mut().map(|projection| (gate, &mut projection.lora));
    let slots = [(up, &mut mlp.up_proj.lora), (down, &mut mlp.down_proj.lora), (both, &mut mlp.gate_up_lora)];
    slots.into_iter().chain(gate).collect()
}

impl Mixture {
    fn forward(&self, x: Tensor<2>, pass: &Pass, config: &MixtureConfig) -> Tensor<2> {
        let logits = pass.linear_f32(x.clone(), &self.gate);
        let bias = self.e_score_correction_bias.as_ref().map(|bias| to_host(bias.val().inner()));
        let groups = router::choose(&logits, bias.as_deref(), config);
        if let Some(log) = pass.router_log {
            log.push(&groups, &logits);
        }
        let weights = router::weights(logits, &groups, config);
        let y = self.experts.forward(gather_groups(x.clone(), &groups), pass, config, &groups);
        let y = combine_groups(y, pass.down(weights), &groups);
        let Some(shared) = &self.shared_expert else { return y };
        let common = shared.forward(x.clone(), pass);
        match &self.shared_expert_gate {
            Some(gate) => y + common * activation::sigmoid(pass.linear(x, gate)),
            None => y + common,
        }
    }

    /// Returns the same mixture with a router that is not trained; as in verl, neither is the gate of the shared expert.
    pub(crate) fn with_frozen_router(mut self) -> Self {
        self.gate.weight = self.gate.weight.set_require_grad(false);
        self.gate.bias = self.gate.bias.map(|bias| bias.set_require_grad(false));
        self.shared_expert_gate = self.shared_expert_gate.map(|gate| gate.set_require_grad(false));
        self
    }

    /// Returns the same mixture; values that gradient descent never changes do not require gradients.
    pub(crate) fn with_frozen_bias(mut self) -> Self {
        self.e_score_correction_bias = self.e_score_correction_bias.map(|bias| bias.set_require_grad(false));
        self
    }
}

impl Experts {
    /// Runs the rows x [places, h] of each expert through it -> [places, h].
    fn forward(&self, x: Tensor<2>, pass: &Pass, config: &MixtureConfig, groups: &Arc<Groups>) -> Tensor<2> {
        let of_row = self.down_proj_bias.is_some().then(|| index(groups.expert_of_places(), &x.device()));
        let project = |x: Tensor<2>, matrices: &Param<Tensor<3>>, bias: &Option<Param<Tensor<2>>>| {
            let y = pass.grouped(x, matrices, groups);
            match (bias, &of_row) {
                (Some(bias), Some(of_row)) => y + pass.down(bias.val()).select(0, of_row.clone()),
                _ => y,
            }
        };
        let gate = project(x.clone(), &self.gate_proj, &self.gate_proj_bias);
        let up = project(x, &self.up_proj, &self.up_proj_bias);
        let inner = match config.act {
            ExpertAct::Glu(act) => glu(gate, up, act),
            ExpertAct::Clamped { alpha, limit } => clamped(gate, up, alpha as f32, limit as f32),
        };
        project(inner, &self.down_proj, &self.down_proj_bias)
    }
}

/// gate·σ(alpha·gate)·(up + 1), with gate at most `limit` and up within ±`limit`; in f32.
fn clamped(gate: Tensor<2>, up: Tensor<2>, alpha: f32, limit: f32) -> Tensor<2> {
    let dtype: FloatDType = gate.dtype().into();
    let [gate, up] = [gate, up].map(|x| crate::ops::cast(x, FloatDType::F32));
    let (gate, up) = (gate.clamp_max(limit), up.clamp(-limit, limit));
    crate::ops::cast(gate.clone() * activation::sigmoid(gate * alpha) * (up + 1.0), dtype)
}

/// Delegates to the module of the variant, without an additional part of the path.
macro_rules! delegate {
    ($self:ident, $module:ident => $result:expr) => {
        match $self {
            Self::Dense($module) => $result,
            Self::Mixture($module) => $result,
        }
    };
    ($self:ident => $function:ident($($argument:expr),*)) => {
        match $self {
            Self::Dense(mlp) => Self::Dense(mlp.$function($($argument),*)),
            Self::Mixture(mixture) => Self::Mixture(mixture.$function($($argument),*)),
        }
    };
}

impl Module for FeedForward {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        delegate!(self, module => module.collect_devices(devices))
    }
    fn fork(self, device: &Device) -> Self {
        delegate!(self => fork(device))
    }
    fn to_device(self, device: &Device) -> Self {
        delegate!(self => to_device(device))
    }
    fn train(self) -> Self {
        delegate!(self => train())
    }
    fn valid(&self) -> Self {
        delegate!(self => valid())
    }
    fn materialize(self) -> Self {
        delegate!(self => materialize())
    }
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        delegate!(self, module => module.visit(visitor))
    }
    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        delegate!(self => map(mapper))
    }
}

impl ModuleDisplayDefault for FeedForward {
    fn content(&self, content: Content) -> Option<Content> {
        delegate!(self, module => content.add_single(module).optional())
    }
}

impl ModuleDisplay for FeedForward {}
