//! Losses, gradients and metrics of every policy loss.

use burnish::algorithm::aggregate::{self, token_weights};
use burnish::algorithm::loss::PolicyObjective;
use burnish::algorithm::policy_loss::{self, ClipOptions, LossOptions};

use super::{Case, assert_close, assert_number, goldens, number};

#[test]
fn golden_policy_losses() {
    let goldens = goldens();
    let mut seen = 0;
    for case in Case::all(&goldens) {
        let (old, rollout) = (case.input("old_log_probs"), case.input("rollout_log_probs"));
        for (key, result) in case.results("policy_loss") {
            let parts: Vec<&str> = key.split('|').collect();
            let Some(policy_loss) = policy_loss::find(parts[0]) else { continue };
            let Some(mode) = aggregate::find(parts[1]) else { continue };
            let option = |name: &str| {
                let settings = parts[2..].iter().flat_map(|part| part.split(",clip_"));
                settings.filter_map(|s| s.trim_start_matches("clip_").strip_prefix(name)?.strip_prefix('=')).next().unwrap()
            };
            let clip = ClipOptions { low: option("low").parse().unwrap(), high: option("high").parse().unwrap(), c: 3.0 };
            let is_weights = option("rollout_is_weights").strip_prefix("token,").map(|threshold| {
                let most: f32 = threshold.parse().unwrap();
                let ratio = old.iter().zip(&rollout).zip(&case.mask);
                ratio.map(|((o, r), m)| (o - r).exp().min(most) * m).collect::<Vec<f32>>()
            });
            let options = LossOptions { clip, ..Default::default() };
            let objective =
                PolicyObjective { policy_loss, options, entropy_coeff: 0.0, kl_loss: None, top_entropy_quantile: 1.0 };
            let weights = token_weights(mode, &case.offsets, &case.mask, None, case.width());
            let ours = case.loss(&objective, &case.input("advantages_in"), &weights, is_weights.as_deref());

            let what = format!("{} {key}", case.name);
            assert_number(&format!("{what} loss"), ours.loss, number(&result["loss"]));
            assert_close(&format!("{what} gradient"), &ours.gradient, &case.column(&result["grad"]));
            for (name, golden) in result["metrics"].as_object().unwrap() {
                let value = ours.metrics.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{what}: no {name}")).1;
                assert_number(&format!("{what} {name}"), value, number(golden));
            }
            seen += 1;
        }
    }
    assert!(seen > 0);
}
