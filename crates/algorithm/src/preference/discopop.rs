//! DiscoPOP: a blend of the logistic and the exponential loss that a language model found.

use super::dual::Dual;
use super::entry::{BETA, F_ALPHA, F_DIVERGENCE, Form, PreferenceLoss};
use super::sigmoid::SIGMOID;

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    name: "discopop",
    aliases: &[],
    doc: "DiscoPOP: logistic where the margin is negative, exponential where it is positive.\n\
          Formula: z = βδ, m = σ(z/τ), τ = discopop_tau; (1−m)·(−LS(z)) + m·e^−z.\n\
          Paper: Lu et al. 2024, Discovering preference optimization algorithms, arXiv:2406.08414.\n\
          TRL: DPOTrainer with loss_type discopop.\n\
          When: an alternative to sigmoid that insists less on pairs that are wrong already.",
    form: Form::Pair(|pair| {
        let z = pair.margin();
        let blend = z * (1.0 / pair.number("discopop_tau"));
        // m·e^−z as one exponential, which does not overflow where z is far below 0.
        let logistic = (Dual::constant(1.0) - blend.sigmoid()) * -z.log_sigmoid();
        logistic + (blend.log_sigmoid() - z).exp()
    }),
    reads: &[BETA, F_DIVERGENCE, F_ALPHA, "algorithm.discopop_tau"],
    ..SIGMOID
};
