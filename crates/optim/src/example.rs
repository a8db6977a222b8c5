//! `SignSGD`: gradient descent by the sign of the gradient.

use anyhow::Result;

use super::kind::OptimizerKind;
use super::rule::{Parameter, Rule, Slot, Step, TrainedParam, UpdatedParam};
use super::settings::OptimizerSettings;

pub(super) const SIGN_SGD: OptimizerKind = OptimizerKind {
    name: "SignSGD",
    aliases: &["signsgd"],
    doc: "A step of the same size for every weight.\n\
          Formula: w ← (1 − lr·λ)·w − lr·sign(g).\n\
          Paper: Bernstein et al. 2018, signSGD, arXiv:1802.04434.\n\
          When: the state must take no memory.",
    reads: &["weight_decay"],
    options: &[],
    build,
};

struct SignSgd {
    weight_decay: f64,
}

fn build(settings: &OptimizerSettings) -> Result<Box<dyn Rule>> {
    Ok(Box::new(SignSgd { weight_decay: settings.weight_decay }))
}

impl Rule for SignSgd {
    fn slots(&self, _: Parameter) -> Vec<Slot> {
        vec![]
    }

    fn splits(&self, _: Parameter) -> bool {
        true
    }

    fn update(&self, at: Step, TrainedParam { weight: w, gradient: g, .. }: TrainedParam) -> UpdatedParam {
        let decayed = w * (1.0 - at.lr * self.weight_decay) as f32;
        (decayed - g.sign() * at.lr as f32, vec![])
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;

    #[test]
    fn every_weight_moves_by_the_learning_rate() {
        let device = Device::default();
        let column = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
        let parameter = Parameter { name: "w", shape: &[2] };
        let step = Step { number: 1, lr: 0.5, grad_scale: 1.0 };
        let rule = SignSgd { weight_decay: 0.0 };
        let trained = TrainedParam { parameter, weight: column([1.0, 1.0]), gradient: column([3.0, -0.1]), state: None };
        let (w, state) = rule.update(step, trained);
        assert_eq!((w.into_data().try_to_vec::<f32>().unwrap(), state.len()), (vec![0.5, 1.5], 0));
        assert_eq!(SIGN_SGD.name, "SignSGD");
    }
}
