//! Losses, gradients and metrics of every policy loss.

use burnish::algorithm::aggregate::{self, AGGREGATIONS, token_weights, trained_sequences};
use burnish::algorithm::kl;
use burnish::algorithm::loss::PolicyObjective;
use burnish::algorithm::policy_loss::{self, LossOptions, PolicyLoss};
use burnish::algorithm::value_loss::{ValueColumns, value_loss};
use serde_json::Value;

use crate::cases::{Case, Loss, assert_close, assert_number, golden_file, goldens, loss_options, number, rows};

/// Losses that verl's goldens lack: losses of TRL, SkyRL and prime-rl, and losses with randomness or a separate mode.
const ELSEWHERE: &[&str] = &["a2po", "clip_cov", "rloo", "vespo", "bypass_mode", "dpo", "dppo_rollout", "ipo", "rollout_is"];

pub(crate) fn objective(policy_loss: &'static PolicyLoss, options: LossOptions) -> PolicyObjective {
    PolicyObjective { policy_loss, options, entropy_coeff: 0.0, kl_loss: None, top_entropy_quantile: 1.0, off_policy_mask: None }
}

/// Losses with importance weights whose terms cancel, so that verl's float32 sum has an error of up to 5e-5 of the remainder.
const CANCELLED: &[&str] = &[
    "case 1 policy_loss/gspo|seq-mean-token-mean|",
    "case 5 policy_loss/dppo_tv|seq-mean-token-mean|",
    "case 5 policy_loss/dppo_kl|seq-mean-token-mean|",
];

/// Compares one entry with ours: `loss`, `grad` and every metric. Losses whose terms cancel may differ by four units in the last
/// place of these terms; the gradient determines their size.
fn check(label: &str, case: &Case, ours: &Loss, golden: &Value) {
    let (loss, gradient) = (number(&golden["loss"]), case.column(&golden["grad"]));
    if CANCELLED.iter().any(|start| label.starts_with(start)) && label.ends_with("rollout_is_weights=token,2.0") {
        let rounding = 4.0 * f64::from(f32::EPSILON) * gradient.iter().map(|g| f64::from(g.abs())).sum::<f64>();
        assert!((ours.loss - loss).abs() <= 1e-5 * loss.abs() + rounding, "{label} loss: {}, golden {loss}", ours.loss);
    } else {
        assert_number(&format!("{label} loss"), ours.loss, loss);
    }
    assert_close(&format!("{label} gradient"), &ours.gradient, &gradient);
    for (name, golden) in golden["metrics"].as_object().unwrap() {
        let value = ours.metrics.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("{label}: no {name}")).1;
        assert_number(&format!("{label} {name}"), value, number(golden));
    }
}

/// The value of `name=value` in a key such as `vanilla|token-mean|clip_low=0.2,clip_high=0.28|rollout_is_weights=none`.
fn setting<'a>(key: &'a str, name: &str) -> Option<&'a str> {
    let at = key.find(&format!("{name}="))? + name.len() + 1;
    key[at..].split('|').next()?.split(",clip_").next()
}

#[test]
fn golden_policy_losses() {
    let goldens = goldens();
    let mut checked = Vec::new();
    for case in Case::all(&goldens) {
        let (old, rollout) = (case.input("old_log_probs"), case.input("rollout_log_probs"));
        for (key, result) in case.json["policy_loss"].as_object().unwrap() {
            let label = format!("{} policy_loss/{key}", case.name);
            let parts: Vec<&str> = key.split('|').collect();
            let policy_loss = policy_loss::find(parts[0]).unwrap_or_else(|| panic!("{label}: no such loss"));
            let mode = aggregate::find(policy_loss.aggregation.unwrap_or(parts[1])).unwrap();
            let clip = |name| setting(key, name).unwrap().parse::<f64>().unwrap();
            let options = loss_options(policy_loss)
                .with("clip_ratio_low", clip("clip_low"))
                .with("clip_ratio_high", clip("clip_high"))
                .with("kl_cov_ratio", 0.2)
                .with("dro_beta", 0.3);
            let is_weights = setting(key, "rollout_is_weights").unwrap().strip_prefix("token,").map(|threshold| {
                let max: f32 = threshold.parse().unwrap();
                let ratio = old.iter().zip(&rollout).zip(&case.mask);
                ratio.map(|((o, r), m)| (o - r).exp().min(max) * m).collect::<Vec<f32>>()
            });
            let weights = token_weights(mode, &case.offsets, &case.mask, case.rows(), None, case.width());
            let objective = objective(policy_loss, options);
            let ours = case.loss(&objective, &case.input("advantages_in"), &weights, is_weights.as_deref());
            check(&label, &case, &ours, result);
            checked.push(policy_loss.name);
        }
    }
    for name in policy_loss::POLICY_LOSSES.iter().map(|loss| loss.name).filter(|name| !ELSEWHERE.contains(name)) {
        assert!(
            checked.contains(&name),
            "tests/golden/algorithms.json has no values of {name}; a loss that verl lacks belongs in ELSEWHERE"
        );
    }
}

#[test]
fn golden_value_losses() {
    let goldens = goldens();
    let mut checked = 0;
    for case in Case::all(&goldens) {
        for (mode, golden) in case.json["value_loss"].as_object().unwrap() {
            let label = format!("{} value_loss/{mode}", case.name);
            let mode = aggregate::find(mode).unwrap();
            let weights = token_weights(mode, &case.offsets, &case.mask, case.rows(), None, case.width());
            let columns = ValueColumns {
                mask: &case.mask,
                values: &case.input("vpreds"),
                old_values: &case.input("values"),
                returns: &case.input("returns_in"),
                weights: &weights,
            };
            let ours = value_loss(&columns, number(&golden["cliprange_value"]));
            assert_number(&format!("{label} loss"), ours.loss, number(&golden["loss"]));
            assert_close(&format!("{label} gradient"), &ours.d_values, &case.column(&golden["grad"]));
            let clipped = ours.metrics.iter().find(|metric| metric.name == "critic/vf_clipfrac").unwrap();
            assert_number(&format!("{label} clipfrac"), clipped.sum / clipped.count, number(&golden["clipfrac"]));
            checked += 1;
        }
    }
    assert!(checked > 10);
}

/// TRL's and OpenRLHF's losses, and verl's clip_cov, from scripts/goldens/golden_losses.py; each result names our settings.
#[test]
fn golden_losses_of_trl_and_openrlhf() {
    let goldens = golden_file("losses-trl-openrlhf.json");
    let mut checked = 0;
    for case in Case::all(&goldens) {
        for (key, result) in case.json["policy_loss"].as_object().unwrap() {
            let label = format!("{} {key}", case.name);
            let (mut scale, mut weighted, mut k3, mut top_entropy_quantile) = (None, false, None, 1.0);
            let policy_loss = policy_loss::find(result["loss_mode"].as_str().unwrap()).unwrap();
            let mut options = loss_options(policy_loss);
            for (name, value) in result["settings"].as_object().unwrap() {
                match name.as_str() {
                    "loss_scale_factor" => scale = Some(number(value)),
                    "weighted" => weighted = true,
                    "k3" => k3 = Some((kl::find("k3").unwrap(), number(value))),
                    "top_entropy_quantile" => top_entropy_quantile = number(value),
                    option => options = options.with(option, number(value)),
                }
            }
            let mode = result["loss_agg_mode"].as_str().unwrap();
            assert!(policy_loss.aggregation.is_none_or(|forced| forced == mode), "{label}");
            let mode = aggregate::find(mode).unwrap();
            // OpenRLHF's mean over responses includes only those with a token; all other means are over all responses.
            let rows = if key.starts_with("OpenRLHF") { trained_sequences(&case.offsets, &case.mask) } else { case.rows() };
            let weights = token_weights(mode, &case.offsets, &case.mask, rows, scale, case.width());
            let objective = PolicyObjective { kl_loss: k3, top_entropy_quantile, ..objective(policy_loss, options) };
            let is_weights = weighted.then(|| case.input("rollout_is_weights"));
            let ours = case.loss(&objective, &case.input("advantages_in"), &weights, is_weights.as_deref());
            check(&label, &case, &ours, result);
            checked += 1;
        }
    }
    assert!(checked > 30);
}

/// Every aggregation over responses, some of them masked as a whole. Masked responses count in means over responses, like in verl
/// 0.9 and TRL. The expected values are from scripts/goldens/golden_aggregations.py.
#[test]
fn golden_aggregations_with_masked_responses() {
    let goldens = golden_file("aggregations.json");
    let mut checked = Vec::new();
    for (index, case) in goldens["cases"].as_array().unwrap().iter().enumerate() {
        let flat = |name: &str| rows(&case[name]).concat();
        let (mask, loss): (Vec<f32>, Vec<f64>) =
            (flat("response_mask").iter().map(|&m| m as f32).collect(), flat("per_token_loss"));
        let (rows, width) = (rows(&case["response_mask"]).len(), rows(&case["response_mask"])[0].len());
        let offsets: Vec<usize> = (0..=rows).map(|row| row * width).collect();
        for (key, result) in case["results"].as_object().unwrap() {
            let mode = aggregate::find(result["loss_agg_mode"].as_str().unwrap()).unwrap();
            let weights = token_weights(mode, &offsets, &mask, rows, result["loss_scale_factor"].as_f64(), width);
            let ours = weights.iter().zip(&loss).map(|(w, l)| f64::from(*w) * l).sum();
            assert_number(&format!("case {index}, {key}"), ours, number(&result["loss"]));
            checked.push(mode.name);
        }
    }
    // The mean over prompts is SkyRL's, in algorithms-2026.json.
    assert!(
        AGGREGATIONS.iter().filter(|mode| mode.name != "prompt-mean").all(|mode| checked.contains(&mode.name)),
        "{checked:?}"
    );
}
