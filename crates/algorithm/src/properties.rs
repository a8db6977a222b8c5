//! Properties that hold for any values, and cases that the goldens do not cover.

use proptest::prelude::*;

use super::advantage::ESTIMATORS;
use super::aggregate::AGGREGATIONS;
use super::kl::{self, KlController, apply_kl_in_reward};
use super::loss::{LossColumns, LossResult, PolicyObjective};
use super::options::Options;
use super::policy_loss::{self, LossOptions, Metric};
use super::preference::PREFERENCE_LOSSES;

/// One response: per token (mask, reward, log π, old, reference, advantage, entropy).
pub(super) type Sequence = Vec<(bool, [f32; 6])>;

pub(super) fn batch() -> impl Strategy<Value = Vec<Sequence>> {
    let token = (prop::bool::weighted(0.8), prop::array::uniform6(-2.0f32..2.0));
    prop::collection::vec(prop::collection::vec(token, 0..7), 1..8)
}

/// The ragged columns of a batch.
pub(super) struct Columns {
    pub offsets: Vec<usize>,
    pub mask: Vec<f32>,
    pub values: [Vec<f32>; 6],
}

pub(super) fn columns(batch: &[Sequence]) -> Columns {
    let mut offsets = vec![0];
    offsets.extend(batch.iter().scan(0, |end, tokens| {
        *end += tokens.len();
        Some(*end)
    }));
    let tokens = || batch.iter().flatten();
    Columns {
        offsets,
        mask: tokens().map(|&(m, _)| f32::from(u8::from(m))).collect(),
        values: std::array::from_fn(|k| tokens().map(|(_, v)| v[k]).collect()),
    }
}

fn objective() -> PolicyObjective {
    PolicyObjective {
        policy_loss: policy_loss::find("vanilla").unwrap(),
        options: LossOptions::new(Options::built_in(policy_loss::CLIPPING)).with("clip_ratio_high", 0.28),
        entropy_coeff: 0.01,
        kl_loss: Some((kl::find("k3+").unwrap(), 0.05)),
        top_entropy_quantile: 1.0,
        off_policy_mask: None,
    }
}

/// Evaluates the loss of a single token with the given values and weight 1.
fn one_token(log_prob: f32, old_log_prob: Option<f32>, advantage: f32) -> LossResult {
    let objective = PolicyObjective { kl_loss: None, entropy_coeff: 0.0, ..objective() };
    objective.evaluate(&LossColumns {
        offsets: &[0, 1],
        mask: &[1.0],
        log_prob: &[log_prob],
        entropy: &[0.0],
        old_log_prob: old_log_prob.as_ref().map(std::slice::from_ref),
        ref_log_prob: None,
        advantages: &[advantage],
        weights: &[1.0],
        penalty_weights: &[1.0],
        rollout_is_weights: None,
        full_kl: None,
        factor: None,
        entropy_mask: None,
        behaviour_log_prob: None,
        entropy_bonus: None,
    })
}

#[test]
fn dual_clip_caps_the_cost_of_a_negative_advantage() {
    let capped = one_token(-1.0, Some(-3.0), -2.0);
    assert_eq!((capped.loss, capped.d_log_prob[0]), (6.0, 0.0));
    assert_eq!(capped.metrics[2], Metric { name: "actor/pg_clipfrac_lower".into(), sum: 1.0, count: 1.0 });
    let far = one_token(0.0, Some(-500.0), -1.0);
    assert_eq!((far.loss, far.d_log_prob[0]), (3.0, 0.0));
}

#[test]
fn on_policy_ratio_is_exactly_one() {
    let result = one_token(-1.2345, None, 0.7);
    assert_eq!((result.loss, result.d_log_prob[0]), (f64::from(-0.7f32), -0.7));
    assert_eq!(result.metrics[1].sum, 0.0);
}

#[test]
fn masked_tokens_are_silent_even_as_nan() {
    let nan = f32::NAN;
    let result = objective().evaluate(&LossColumns {
        offsets: &[0, 2],
        mask: &[1.0, 0.0],
        log_prob: &[-1.0, nan],
        entropy: &[0.5, nan],
        old_log_prob: Some(&[-1.1, nan]),
        ref_log_prob: Some(&[-1.2, nan]),
        advantages: &[1.0, nan],
        weights: &[1.0, 0.0],
        penalty_weights: &[1.0, 0.0],
        rollout_is_weights: Some(&[1.0, nan]),
        full_kl: None,
        factor: None,
        entropy_mask: None,
        behaviour_log_prob: None,
        entropy_bonus: None,
    });
    assert!(result.loss.is_finite() && result.d_log_prob[0].is_finite() && result.metrics.iter().all(|m| m.sum.is_finite()));
    assert_eq!((result.d_log_prob[1], result.d_entropy[1]), (0.0, 0.0));
}

#[test]
fn kl_in_reward_is_subtracted_from_trained_tokens_and_then_seen_by_the_controller() {
    let mut controller = KlController::Adaptive { coef: 0.5, target: 0.1, horizon: 100.0 };
    let result = apply_kl_in_reward(
        &[0, 3, 3, 4],
        &[1.0, 0.0, 1.0, 1.0],
        &[0.0, 0.0, 1.0, 2.0],
        &kl::find("k1").unwrap().values(&[-1.0, f32::NAN, -1.0, -2.0], &[-2.0, -9.0, -3.0, -2.5], None),
        &mut controller,
    );
    assert_eq!(result.rewards, [-0.5, 0.0, 0.0, 1.75]);
    assert!((result.current_kl - (1.5 + 0.0 + 0.5) / 3.0).abs() < 1e-7);
    assert_eq!(result.coef, 0.5);
    assert!((controller.coef() - 0.5 * (1.0 + 0.2 * 3.0 / 100.0)).abs() < 1e-12);
    let state = serde_json::to_string(&controller).unwrap();
    assert_eq!(serde_json::from_str::<KlController>(&state).unwrap(), controller);
}

/// `full` is differentiated on the model's side; `full+` takes the gradient of k2 instead, d/dlog π of d²/2.
#[test]
fn full_kl_hands_its_gradient_to_the_model() {
    let run = |name: &str| {
        let kl_loss = Some((kl::find(name).unwrap(), 0.5));
        PolicyObjective { kl_loss, entropy_coeff: 0.0, ..objective() }.evaluate(&LossColumns {
            offsets: &[0, 3],
            mask: &[1.0, 0.0, 1.0],
            log_prob: &[-1.0, f32::NAN, -2.0],
            entropy: &[0.0; 3],
            old_log_prob: None,
            ref_log_prob: Some(&[-1.5, f32::NAN, -1.0]),
            advantages: &[0.0; 3],
            weights: &[0.25, 0.0, 0.75],
            penalty_weights: &[0.25, 0.0, 0.75],
            rollout_is_weights: None,
            full_kl: Some(&[0.5, f32::NAN, 2.0]),
            factor: None,
            entropy_mask: None,
            behaviour_log_prob: None,
            entropy_bonus: None,
        })
    };
    let (full, straight_through) = (run("full"), run("full+"));
    assert_eq!((full.terms[2], full.loss), (("actor/kl_loss", 0.125 + 1.5), 0.5 * 1.625));
    assert_eq!((full.d_full_kl, full.d_log_prob), (vec![0.125, 0.0, 0.375], vec![0.0; 3]));
    assert_eq!((straight_through.terms, straight_through.loss), (full.terms, full.loss));
    assert_eq!((straight_through.d_full_kl, straight_through.d_log_prob), (vec![], vec![0.125 * 0.5, 0.0, -0.375]));
}

/// Every entry of every table can be found by each of its names, which are unique in the table, and has its documentation.
#[test]
fn tables_are_consistent() {
    type Rows<'a> = Vec<(&'a str, &'a [&'a str], &'a str)>;
    let tables: [Rows; 5] = [
        ESTIMATORS.iter().map(|e| (e.name, e.aliases, e.doc)).collect(),
        policy_loss::POLICY_LOSSES.iter().map(|e| (e.name, e.aliases, e.doc)).collect(),
        PREFERENCE_LOSSES.iter().map(|e| (e.name, e.aliases, e.doc)).collect(),
        kl::KL_ESTIMATORS.iter().map(|e| (e.name, e.aliases, e.doc)).collect(),
        AGGREGATIONS.iter().map(|e| (e.name, &[] as &[&str], e.doc)).collect(),
    ];
    for rows in tables {
        let mut names: Vec<&str> =
            rows.iter().flat_map(|(name, aliases, _)| std::iter::once(name).chain(*aliases)).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        for (name, _, doc) in rows {
            let first = doc.lines().next().unwrap();
            assert!(
                first.len() > 10
                    && doc.contains("\nFormula: ")
                    && ["\nverl: ", "\nTRL: ", "\nOpenRLHF: ", "\nPaper: ", "\nSource: "].iter().any(|s| doc.contains(s)),
                "{name}: {doc}"
            );
        }
    }
    assert!(kl::names().iter().all(|name| kl::find(name).is_some()));
}
