//! Online DPO: loss, gradient and metrics of TRL's trainer, for any micro-batches of the mini-batch.

use burnish::algorithm::aggregate::{self, token_weights};
use burnish::algorithm::loss::{LossColumns, PolicyObjective};
use burnish::algorithm::policy_loss::{self, MiniBatch};
use serde_json::Value;

use crate::cases::{assert_number, golden_file, loss_options, number, rows};

/// The loss, its derivative by every token, and the metrics of a mini-batch that is evaluated `size` sequences at a time.
fn evaluate(
    objective: &PolicyObjective,
    tokens: [&[Vec<f64>]; 2],
    scores: &[f64],
    groups: &[usize],
    size: usize,
) -> (f64, Vec<f32>, Vec<(String, f64)>) {
    let column = |rows: &[Vec<f64>]| -> Vec<f32> { rows.iter().flatten().map(|&x| x as f32).collect() };
    let [log_prob, reference] = tokens.map(column);
    let advantages: Vec<f32> = tokens[0].iter().zip(scores).flat_map(|(row, &s)| row.iter().map(move |_| s as f32)).collect();
    let mut offsets = vec![0];
    tokens[0].iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len()));
    let (mask, entropy) = (vec![1.0; log_prob.len()], vec![0.0; log_prob.len()]);
    let prepared = objective.prepare(
        &MiniBatch {
            offsets: &offsets,
            mask: &mask,
            log_prob: &log_prob,
            entropy: &entropy,
            old_log_prob: &log_prob,
            advantages: &advantages,
            ref_log_prob: Some(&reference),
            groups,
            options: &objective.options,
        },
        &mut || 0.5,
    );
    let factor = prepared.factor.unwrap();
    let mode = aggregate::find(objective.policy_loss.aggregation.unwrap()).unwrap();
    let weights = token_weights(mode, &offsets, &mask, scores.len(), None, 8);
    let mut gradient = vec![];
    let mut loss = prepared.metrics.iter().find(|(name, _)| name == "actor/pg_loss").unwrap().1;
    for bounds in offsets.windows(2).collect::<Vec<_>>().chunks(size) {
        let (start, end) = (bounds[0][0], bounds[bounds.len() - 1][1]);
        let own: Vec<usize> = std::iter::once(0).chain(bounds.iter().map(|sequence| sequence[1] - start)).collect();
        let result = objective.evaluate(&LossColumns {
            offsets: &own,
            mask: &mask[start..end],
            log_prob: &log_prob[start..end],
            entropy: &entropy[start..end],
            old_log_prob: None,
            ref_log_prob: Some(&reference[start..end]),
            advantages: &advantages[start..end],
            weights: &weights[start..end],
            penalty_weights: &weights[start..end],
            rollout_is_weights: None,
            full_kl: None,
            factor: Some(&factor[start..end]),
            entropy_mask: None,
            behaviour_log_prob: None,
            entropy_bonus: None,
        });
        loss += result.terms.iter().find(|(name, _)| *name == "actor/pg_loss").unwrap().1;
        gradient.extend(result.d_log_prob);
    }
    (loss, gradient, prepared.metrics)
}

fn objective(loss_type: &str, beta: f64) -> PolicyObjective {
    let policy_loss = policy_loss::find("online_dpo").unwrap();
    let options = loss_options(policy_loss).with("dpo_loss_type", loss_type).with("dpo_beta", beta);
    PolicyObjective { policy_loss, options, entropy_coeff: 0.0, kl_loss: None, top_entropy_quantile: 1.0, off_policy_mask: None }
}

#[test]
fn online_dpo_golden() {
    let goldens = golden_file("offline/losses.json");
    let cases = goldens["online_dpo"].as_array().unwrap();
    assert!(!cases.is_empty());
    for (i, case) in cases.iter().enumerate() {
        let options = &case["options"];
        // TRL's ipo uses sums; our ipo uses means, like that of TRL's other trainer.
        let loss_type = if options["loss_type"] == "ipo" { "ipo_sum" } else { "sigmoid" };
        let objective = objective(loss_type, number(&options["beta"]));
        let penalty = options["missing_eos_penalty"].as_f64().unwrap_or(0.0);
        let ended = case["ends_with_eos"].as_array().unwrap();
        let rewards = case["rewards"].as_array().unwrap().iter().zip(ended);
        let scores: Vec<f64> =
            rewards.map(|(reward, ended)| number(reward) - if ended == &Value::Bool(true) { 0.0 } else { penalty }).collect();
        let (log_probs, reference, expected) = (rows(&case["logps"]), rows(&case["ref_logps"]), rows(&case["grad"]));
        let groups: Vec<usize> = (0..scores.len()).map(|i| i % (scores.len() / 2)).collect();
        for size in [1, 2, scores.len()] {
            let (loss, gradient, metrics) = evaluate(&objective, [&log_probs, &reference], &scores, &groups, size);
            assert_number(&format!("case {i} loss"), loss, number(&case["loss"]));
            for (ours, golden) in gradient.iter().zip(expected.iter().flatten()) {
                assert_number(&format!("case {i} gradient"), f64::from(*ours), *golden);
            }
            assert_eq!(gradient.len(), expected.iter().flatten().count());
            for name in
                ["rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected"]
            {
                let ours = metrics.iter().find(|(own, _)| own.strip_prefix("actor/") == Some(name)).unwrap().1;
                assert_number(&format!("case {i} {name}"), ours, number(&case["metrics"][name]));
            }
        }
    }
}

/// With more than two responses the best and the worst are compared, and among equal ones the first and the last. The other
/// losses train nothing, nor does a single response.
#[test]
fn the_best_and_the_worst_are_compared() {
    let tokens = vec![vec![-1.0]; 8];
    let scores = [1.0, 3.0, 3.0, -1.0, -1.0, 2.0, 2.0, 9.0];
    let (_, gradient, _) = evaluate(&objective("sigmoid", 0.1), [&tokens, &tokens], &scores, &[4, 4, 4, 4, 4, 7, 7, 1], 3);
    let signs: Vec<i32> = gradient.iter().map(|g| if *g == 0.0 { 0 } else { -g.signum() as i32 }).collect();
    assert_eq!(signs, [0, 1, 0, 0, -1, 1, -1, 0]);
}
