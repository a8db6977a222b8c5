//! SPIRAL's role-conditioned advantage: the score less a moving mean of the scores of its role.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "rae",
    aliases: &[],
    doc: "SPIRAL's role-conditioned advantage: the score less a moving mean of earlier scores of the same role.\n\
          Formula: response by response in the order of the batch: A_i = s_i − b[role]; then b[role] ← d·b[role] + (1 − d)·s_i; d = \
          rae_decay; b begins at 0 and is in the checkpoint.\n\
          Paper: Liu et al. 2025, SPIRAL, arXiv:2506.24119.\n\
          prime-rl: RAEAlgorithm.\n\
          Deviation: the role of a row is `role` of its extra_info, else its data source; prime-rl's restart begins at 0.\n\
          When: games between roles whose scores differ by role and not by prompt, with one response to each prompt. The first \
          1/(1 − d) responses of a role see a baseline near 0.",
    needs: &[Need::RoleBaseline],
    reads: &[],
    refuses: &[],
    run,
};

/// The moving mean of each role; serialised into checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleBaselines(BTreeMap<String, f64>);

impl RoleBaselines {
    /// Returns the baseline of each response, and moves the baselines. `scores`: `None` for responses without a score, which move
    /// nothing.
    pub fn follow(&mut self, decay: f64, roles: &[&str], scores: &[Option<f64>]) -> Vec<f64> {
        let each = roles.iter().zip(scores);
        each.map(|(role, score)| {
            let baseline = self.0.entry((*role).to_owned()).or_default();
            let before = *baseline;
            if let Some(score) = score {
                *baseline = decay * before + (1.0 - decay) * score;
            }
            before
        })
        .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the roles with their baselines.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(role, baseline)| (role.as_str(), *baseline))
    }
}

/// # Panics
/// Without baselines.
fn run(input: &AdvantageInput) -> AdvantageOutput {
    let baselines = input.role_baselines.expect("an estimator was run without the baselines of roles");
    let advantages: Vec<f64> = input.scores().iter().zip(baselines).map(|(score, baseline)| score - baseline).collect();
    input.spread(&advantages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_without_a_score_move_no_baseline() {
        let mut baselines = RoleBaselines::default();
        let before = baselines.follow(0.5, &["white", "black", "white", "white"], &[Some(1.0), Some(-1.0), None, Some(0.0)]);
        assert_eq!(before, [0.0, 0.0, 0.5, 0.5]);
        assert_eq!(baselines.iter().collect::<Vec<_>>(), [("black", -0.5), ("white", 0.25)]);
        let text = serde_json::to_string(&baselines).unwrap();
        assert_eq!(serde_json::from_str::<RoleBaselines>(&text).unwrap(), baselines);
    }
}
