//! Properties that hold for any batch, and cases that the reference numbers do not cover.

use proptest::prelude::*;

use super::{BypassLoss, CRITERIA, Corrected, CorrectionSettings, RolloutCorrection, off_policy_metrics};
use crate::aggregate::{self, token_weights};
use crate::loss::{LossColumns, PolicyObjective};
use crate::options::Options;
use crate::policy_loss::{self, LossOptions, MiniBatch};

/// Per sequence and token: mask, log π, log π of the rollout, advantage.
type Batch = Vec<Vec<(bool, [f32; 3])>>;

fn batch() -> impl Strategy<Value = Batch> {
    let token = (prop::bool::weighted(0.8), [-3.0f32..0.0, -3.0f32..0.0, -2.0f32..2.0]);
    prop::collection::vec(prop::collection::vec(token, 0..6), 1..7)
}

struct Columns {
    offsets: Vec<usize>,
    mask: Vec<f32>,
    /// The columns log π, log π of the rollout and advantage; NaN where the mask is 0.
    values: [Vec<f32>; 3],
}

fn columns(batch: &[Vec<(bool, [f32; 3])>]) -> Columns {
    let mut offsets = vec![0];
    offsets.extend(batch.iter().scan(0, |end, tokens| {
        *end += tokens.len();
        Some(*end)
    }));
    Columns {
        offsets,
        mask: batch.iter().flatten().map(|&(m, _)| f32::from(u8::from(m))).collect(),
        values: std::array::from_fn(|k| batch.iter().flatten().map(|&(m, v)| if m { v[k] } else { f32::NAN }).collect()),
    }
}

fn correction(is: &str, is_threshold: &str, rs: &str, rs_threshold: &str) -> RolloutCorrection {
    RolloutCorrection::new(&CorrectionSettings {
        rollout_is: (!is.is_empty()).then(|| is.to_owned()),
        rollout_is_threshold: Some(is_threshold.to_owned()),
        rollout_is_batch_normalize: true,
        rollout_rs: (!rs.is_empty()).then(|| rs.to_owned()),
        rollout_rs_threshold: Some(rs_threshold.to_owned()),
        rollout_token_veto_threshold: Some(0.2),
        ..CorrectionSettings::default()
    })
    .unwrap()
}

fn corrections() -> Vec<RolloutCorrection> {
    let all = CRITERIA.iter().map(|c| c.name).collect::<Vec<_>>().join(",");
    vec![
        correction("token", "1.5", "token_k1,seq_mean_k3", "2"),
        correction("sequence", "0.5_2", "geometric", "0.5_3"),
        correction("sequence", "2", &all, "3.5"),
    ]
}

fn apply(correction: &RolloutCorrection, c: &Columns) -> Corrected {
    correction.apply(&c.offsets, &c.mask, &c.values[0], &c.values[1])
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_policies_have_weight_one_and_lose_nothing(batch in batch()) {
        let c = columns(&batch);
        for correction in corrections() {
            let result = correction.apply(&c.offsets, &c.mask, &c.values[0], &c.values[0]);
            prop_assert_eq!(result.weights.as_ref().unwrap(), &c.mask);
            prop_assert_eq!(&result.mask, &c.mask);
            for (name, value) in &result.metrics {
                let one =
                    ["is_mean", "is_max", "is_min", "sample_size", "is_seq_mean", "is_seq_max", "is_seq_min", "factor", "ppl_ratio"];
                if !["training_ppl", "training_log_ppl", "rollout_ppl", "rollout_log_ppl"].iter().any(|n| name.ends_with(n)) {
                    prop_assert_eq!(*value, f64::from(u8::from(one.iter().any(|n| name.ends_with(n)))), "{}", name);
                }
            }
        }
    }

    /// Columns are permuted with their sequences, and metrics do not change. Sequences without a trained token, inserted
    /// anywhere, change nothing; neither do masked tokens, which are NaN here. No other number becomes NaN.
    #[test]
    fn neither_order_nor_empty_sequences_matter(batch in batch(), turn in 0..7usize) {
        let mut turned = batch.clone();
        turned.rotate_left(turn % batch.len());
        turned.insert(turn % batch.len(), vec![(false, [0.0; 3]); 2]);
        turned.push(Vec::new());
        let (c, t) = (columns(&batch), columns(&turned));
        for correction in corrections() {
            let (plain, other) = (apply(&correction, &c), apply(&correction, &t));
            prop_assert!(plain.metrics.iter().all(|(_, value)| value.is_finite()), "{:?}", plain.metrics);
            prop_assert_eq!(plain.metrics.is_empty(), c.mask.iter().all(|&m| m == 0.0));
            prop_assert_eq!(plain.metrics.len(), other.metrics.len());
            for ((name, a), (_, b)) in plain.metrics.iter().zip(&other.metrics) {
                prop_assert!(close(*a, *b), "{}: {} {}", name, a, b);
            }
            let rows = |c: &Columns, column: &[f32]| -> Vec<Vec<f32>> {
                let trained = |w: &[usize]| (w[0]..w[1]).filter(|&i| c.mask[i] != 0.0).map(|i| column[i]).collect();
                let mut rows: Vec<Vec<f32>> = c.offsets.windows(2).map(trained).filter(|row: &Vec<f32>| !row.is_empty()).collect();
                rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
                rows
            };
            prop_assert_eq!(rows(&c, &plain.mask), rows(&t, &other.mask));
            let weights = |c: &Columns, r: &Corrected| rows(c, r.weights.as_ref().unwrap()).concat();
            for (a, b) in weights(&c, &plain).iter().zip(weights(&t, &other)) {
                prop_assert!((a - b).abs() <= 1e-6 * b.abs(), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn bypass_mode_does_not_depend_on_micro_batches(batch in batch()) {
        let c = columns(&batch);
        let [log_prob, rollout, advantages] = &c.values;
        let weights = token_weights(aggregate::find("seq-mean-token-mean").unwrap(), &c.offsets, &c.mask, c.offsets.len() - 1, None, 6);
        let losses = [BypassLoss::Reinforce, BypassLoss::PpoClip, BypassLoss::Reinforce];
        for (correction, bypass_loss) in corrections().into_iter().zip(losses) {
            let policy_loss = policy_loss::find("bypass_mode").unwrap();
            let settings = Options::built_in(policy_loss.reads);
            let options = LossOptions { settings, rollout_correction: Some(correction.clone()), bypass_loss };
            let objective = PolicyObjective { policy_loss, options, entropy_coeff: 0.0, kl_loss: None, top_entropy_quantile: 1.0, off_policy_mask: None };
            let prepared = objective.prepare(
                &MiniBatch {
                    offsets: &c.offsets,
                    mask: &c.mask,
                    log_prob,
                    entropy: log_prob,
                    old_log_prob: rollout,
                    advantages,
                    ref_log_prob: None,
                    groups: &[],
                    options: &objective.options,
                },
                &mut || 0.5,
            );
            let factor = prepared.factor.unwrap();
            let evaluate = |sequences: std::ops::Range<usize>| {
                let cut = &c.offsets[sequences.start..=sequences.end];
                let own = |column: &[f32]| column[cut[0]..cut[cut.len() - 1]].to_vec();
                objective.evaluate(&LossColumns {
                    offsets: &cut.iter().map(|o| o - cut[0]).collect::<Vec<_>>(),
                    mask: &own(&c.mask),
                    log_prob: &own(log_prob),
                    entropy: &own(log_prob),
                    old_log_prob: Some(&own(rollout)),
                    ref_log_prob: None,
                    advantages: &own(advantages),
                    weights: &own(&weights),
                    penalty_weights: &own(&weights),
                    rollout_is_weights: None,
                    full_kl: None,
                    factor: Some(&own(&factor)),
                    entropy_mask: None,
                    behaviour_log_prob: None,
                    entropy_bonus: None,
                })
            };
            let whole = evaluate(0..batch.len());
            let parts: Vec<_> = (0..batch.len()).map(|i| evaluate(i..i + 1)).collect();
            let gradient: Vec<f32> = parts.iter().flat_map(|p| &p.d_log_prob).copied().collect();
            prop_assert_eq!(&gradient, &whole.d_log_prob);
            prop_assert!(close(parts.iter().map(|p| p.loss).sum(), whole.loss));
            prop_assert!(whole.loss.is_finite() && prepared.metrics.iter().all(|(_, value)| value.is_finite()));
            let kept = apply(&correction, &c).mask;
            prop_assert!(kept.iter().zip(&gradient).all(|(&k, &g)| k != 0.0 || g == 0.0));
            for metric in &whole.metrics {
                let own = parts.iter().flat_map(|p| &p.metrics).filter(|m| m.name == metric.name);
                let (sum, count) = own.fold((0.0, 0.0), |(sum, count), m| (sum + m.sum, count + m.count));
                prop_assert!(close(sum, metric.sum) && count == metric.count, "{}", metric.name);
                prop_assert_eq!(count, f64::from(kept.iter().sum::<f32>()));
            }
        }
    }
}

/// Bounds that leave no weight above 0: verl divides by the resulting zero.
#[test]
fn weights_that_are_all_zero_have_no_effective_sample() {
    let correction = correction("token", "0.9_1.1", "", "");
    let result = correction.apply(&[0, 2], &[1.0, 1.0], &[-1.0, -1.0], &[-2.0, -3.0]);
    assert_eq!(result.weights, Some(vec![0.0, 0.0]));
    let of = |name: &str| result.metrics.iter().find(|(n, _)| n == &format!("rollout_corr/{name}")).unwrap().1;
    assert_eq!(
        [of("rollout_is_eff_sample_size"), of("rollout_is_oob_ratio"), of("rollout_is_batch_norm_factor")],
        [0.0, 1.0, 1.0]
    );
    assert!(off_policy_metrics(&[0, 1], &[0.0], &[f32::NAN], &[f32::NAN]).is_empty());
}

type Change<'a> = &'a dyn Fn(&mut CorrectionSettings);

#[test]
fn wrong_settings_name_the_key_and_what_to_write() {
    let cases: &[(Change, &[&str])] = &[
        (&|s| s.rollout_is = Some("geometric".into()), &["rollout_is is `geometric`", "token, sequence or null"]),
        (&|s| s.rollout_is_threshold = None, &["rollout_is_threshold is missing", "2.0"]),
        (&|s| s.rollout_is_threshold = Some("0".into()), &["rollout_is_threshold is 0", "above 0"]),
        (&|s| s.rollout_is_threshold = Some("2_1".into()), &["rollout_is_threshold", "lower bound 2, above the upper bound 1"]),
        (&|s| s.rollout_is_threshold = Some("many".into()), &["rollout_is_threshold is `many`", "0.5_2.0"]),
        (&|s| s.rollout_is_threshold_lower = Some(-1.0), &["rollout_is_threshold_lower", "at least 0"]),
        (
            &|s| (s.rollout_is_threshold, s.rollout_is_threshold_lower) = (Some("0.5_2".into()), Some(0.5)),
            &["rollout_is_threshold is `0.5_2`", "rollout_is_threshold_lower", "leave one"],
        ),
        (
            &|s| s.rollout_rs = Some("seq_max_k1".into()),
            &["unknown criterion `seq_max_k1`", "token_k1, token, token_k2", "geometric"],
        ),
        (&|s| s.rollout_rs = Some(" ,".into()), &["rollout_rs is empty", "token_k1"]),
        (&|s| s.rollout_rs_threshold = None, &["rollout_rs_threshold has 0 bounds", "rollout_rs 2 criteria", "one for each"]),
        (&|s| s.rollout_rs_threshold = Some("1,2,3".into()), &["has 3 bounds"]),
        (&|s| s.rollout_rs_threshold = Some("2,0.1_0.5".into()), &["for `token_k2`, is `0.1_0.5`", "one number"]),
        (&|s| s.rollout_rs_threshold = Some("0.5".into()), &["for `token_k1`, accepts ratios from 2 to 0.5", "above 1"]),
        (&|s| s.rollout_rs_threshold = Some("0_2,1".into()), &["lower bound", "for `token_k1`, is 0", "above 0"]),
        (&|s| s.rollout_token_veto_threshold = Some(0.0), &["rollout_token_veto_threshold is 0", "above 0"]),
    ];
    for (change, expected) in cases {
        let mut settings = CorrectionSettings {
            rollout_is: Some("token".into()),
            rollout_rs: Some("token_k1,token_k2".into()),
            rollout_rs_threshold: Some("2".into()),
            ..CorrectionSettings::default()
        };
        assert!(RolloutCorrection::new(&settings).is_ok());
        change(&mut settings);
        let message = RolloutCorrection::new(&settings).unwrap_err().to_string();
        assert!(message.starts_with("algorithm.rollout_correction.") || message.starts_with("the lower bound of"), "{message}");
        assert!(expected.iter().all(|part| message.contains(part)), "{message}");
    }
    assert_eq!(RolloutCorrection::new(&CorrectionSettings::default()).unwrap(), RolloutCorrection::default());
}

#[test]
fn criteria_have_one_name_each_and_say_what_they_are() {
    let mut names: Vec<&str> = CRITERIA.iter().flat_map(|c| [Some(c.name), c.older_name]).flatten().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(CRITERIA.iter().all(|c| c.doc.contains("\nFormula: ")));
}

/// No threshold, and a ratio beyond the range of floating-point numbers.
#[test]
fn weights_beyond_floating_point_are_bounded() {
    for level in ["token", "sequence"] {
        let settings = CorrectionSettings {
            rollout_is: Some(level.into()),
            rollout_is_threshold: Some("inf".into()),
            ..CorrectionSettings::default()
        };
        let correction = RolloutCorrection::new(&settings).unwrap();
        let corrected = correction.apply(&[0, 2], &[1.0, 1.0], &[-1.0, -1.0], &[-500.0, -500.0]);
        assert_eq!(corrected.weights.unwrap(), [20f32.exp(); 2], "{level}");
        assert!(corrected.metrics.iter().all(|(_, value)| value.is_finite()), "{:?}", corrected.metrics);
    }
}
