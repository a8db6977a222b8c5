//! Adam (Kingma & Ba 2015): AdamW's update with the weight decay in the gradient.

use super::adamw::{AdamWConfig, constants, moments, step};
use super::kind::OptimizerKind;
use super::rule::{Parameter, Rule, Slot, Step, TrainedParam, UpdatedParam, state, tensors};

pub(super) const ADAM: OptimizerKind = OptimizerKind {
    name: "Adam",
    aliases: &[],
    doc: "Adam with the weight decay in the gradient. Lower-case adam means AdamW, as in Megatron and OpenRLHF.\n\
          Formula: g ← g + λw; m ← β₁m + (1 − β₁)g; v ← β₂v + (1 − β₂)g²; w ← w − lr/(1 − β₁ᵗ) · m/(√v/√(1 − β₂ᵗ) + ε).\n\
          Paper: Kingma & Ba 2015, arXiv:1412.6980.\n\
          verl: torch.optim.Adam.\n\
          When: to repeat a run that used it.",
    reads: &["betas", "eps", "weight_decay"],
    options: &[],
    build: |settings| Ok(Box::new(Adam(AdamWConfig::from_settings(settings)))),
};

struct Adam(AdamWConfig);

impl Rule for Adam {
    fn slots(&self, parameter: Parameter) -> Vec<Slot> {
        moments(parameter)
    }

    fn splits(&self, _: Parameter) -> bool {
        true
    }

    fn update(&self, at: Step, TrainedParam { weight: w, gradient: g, state: previous, .. }: TrainedParam) -> UpdatedParam {
        let [m, v] = tensors(previous, &w.device(), || [w.zeros_like(), w.zeros_like()]);
        let decay = self.0.weight_decay;
        let config = AdamWConfig { weight_decay: 0.0, ..self.0 };
        // Without a decay, the gradient is scaled in the update's own pass.
        let (g, scale) = match decay {
            0.0 => (g, at.grad_scale),
            _ => (g * at.grad_scale as f32 + w.clone() * decay as f32, 1.0),
        };
        let (w, m, v) = step(w, m, v, g, constants(&config, at.lr, at.number, scale));
        (w, state([m, v]))
    }
}
