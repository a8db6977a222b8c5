//! The optimal token baseline of responses with tool calls: steps are counted in tokens of the policy.

use super::Estimator;
use super::optimal_token_baseline::run;
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "tir_optimal_token_baseline",
    aliases: &[],
    doc: "The optimal token baseline for responses with tool calls: tokens of tools do not count as steps.\n\
          Formula: as optimal_token_baseline, t counting the trained tokens of a response only.\n\
          Source: The Optimal Token Baseline, https://yingru.notion.site/The-Optimal-Token-Baseline-399211a558b782cfa936014c0d42dfb8.\n\
          verl: compute_multi_turn_optimal_token_baseline_advantage.\n\
          When: several turns with tools, where equal positions are not equally far into what the policy wrote.",
    needs: &[Need::Group, Need::SumPiSquared],
    reads: &[],
    refuses: &[],
    run: |input| run(input, |_, rank| rank),
};
