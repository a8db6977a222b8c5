//! Stochastic gradient descent, with optional momentum.

use anyhow::Result;

use super::kind::OptimizerKind;
use super::rule::{Parameter, Rule, Slot, Step, TrainedParam, UpdatedParam, state, tensors};
use super::settings::{OptimizerOption, OptimizerSettings};

pub(super) const SGD: OptimizerKind = OptimizerKind {
    name: "SGD",
    aliases: &["sgd"],
    doc: "Gradient descent, with momentum, dampening and Nesterov's step as in torch.\n\
          Formula: g ← g + λw; b ← μb + (1 − dampening)g, at first b ← g; w ← w − lr·b, with nesterov w − lr·(g + μb).\n\
          verl: torch.optim.SGD.\n\
          When: the state must take no memory, or one number for each weight.",
    reads: &["weight_decay"],
    options: &[
        OptimizerOption { name: "momentum", default: "0", doc: "Factor on the running sum of gradients; 0 disables it." },
        OptimizerOption { name: "dampening", default: "0", doc: "Share of a gradient that does not enter that sum." },
        OptimizerOption { name: "nesterov", default: "false", doc: "Nesterov's step; needs a momentum and a dampening of 0." },
    ],
    build,
};

struct Sgd {
    momentum: f64,
    dampening: f64,
    nesterov: bool,
    weight_decay: f64,
}

fn build(settings: &OptimizerSettings) -> Result<Box<dyn Rule>> {
    let momentum = settings.number("momentum", "a number that is at least 0", |number| number >= 0.0)?;
    let dampening = settings.number("dampening", "a number", f64::is_finite)?;
    let nesterov = settings.flag("nesterov")?;
    settings.require(!nesterov || momentum > 0.0 && dampening == 0.0, "`nesterov` needs a momentum and a dampening of 0")?;
    Ok(Box::new(Sgd { momentum, dampening, nesterov, weight_decay: settings.weight_decay }))
}

impl Rule for Sgd {
    fn slots(&self, parameter: Parameter) -> Vec<Slot> {
        if self.momentum == 0.0 { vec![] } else { vec![Slot::f32("momentum_buffer", parameter.size())] }
    }

    fn splits(&self, _: Parameter) -> bool {
        true
    }

    fn update(&self, at: Step, TrainedParam { weight: w, gradient: g, state: previous, .. }: TrainedParam) -> UpdatedParam {
        let (lr, momentum) = (at.lr as f32, self.momentum as f32);
        let g = g * at.grad_scale as f32;
        let g = if self.weight_decay == 0.0 { g } else { g + w.clone() * self.weight_decay as f32 };
        if self.momentum == 0.0 {
            return (w - g * lr, vec![]);
        }
        let sum = match previous {
            None => g.clone(),
            previous => {
                let [sum] = tensors(previous, &w.device(), || [w.zeros_like()]);
                sum * momentum + g.clone() * (1.0 - self.dampening) as f32
            }
        };
        let direction = if self.nesterov { g + sum.clone() * momentum } else { sum.clone() };
        (w - direction * lr, state([sum]))
    }
}
