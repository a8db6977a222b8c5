//! The place of the user's own loss, which a Python file computes: the loss of each token is 0.

use super::{LossInput, PolicyLoss, PolicyLossOutput};

/// The entry of a run whose policy loss is the user's file; no setting can name it.
pub static CUSTOM: PolicyLoss = PolicyLoss {
    name: "a loss in Python",
    aliases: &[],
    doc: "",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &[],
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    PolicyLossOutput { per_token: x.log_prob.clone() * 0.0, metrics: Vec::new() }
}
