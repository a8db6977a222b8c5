//! Properties of every policy loss, for any values: a new row of the table is tested at once.

use proptest::prelude::*;

use super::{LossOptions, Metric, MiniBatch, POLICY_LOSSES, PolicyLoss, find};
use crate::aggregate::{self, AGGREGATIONS, Aggregation, token_weights};
use crate::kl;
use crate::loss::{LossColumns, LossResult, PolicyObjective};
use crate::options::Options;
use crate::properties::{Columns, Sequence, batch, columns};
use crate::sequences;
use burnish_registry::Need;

/// The built-in settings of a loss, with a clip range of two widths.
fn built_in(loss: &PolicyLoss) -> LossOptions {
    LossOptions::new(Options::built_in(loss.reads)).with("clip_ratio_high", 0.28)
}

/// Settings with which every loss takes effect and no loss depends on chance.
fn options(loss: &PolicyLoss) -> LossOptions {
    built_in(loss).with("clip_cov_ratio", 1.0).with("clip_cov_lb", 0.0).with("kl_cov_ratio", 0.3).with("dro_beta", 0.3)
}

/// Returns every loss by itself, and `vanilla` also with delta.
fn plain() -> Vec<PolicyObjective> {
    let of = |policy_loss: &'static PolicyLoss, options| PolicyObjective {
        policy_loss,
        options,
        entropy_coeff: 0.0,
        kl_loss: None,
        top_entropy_quantile: 1.0,
        off_policy_mask: None,
    };
    let vanilla = find("vanilla").unwrap();
    let with_delta = of(vanilla, options(vanilla).with("delta", 1.5));
    // A loss that compares responses with each other and with a reference is not a policy gradient, and has its own tests.
    let alone = POLICY_LOSSES.iter().filter(|loss| !loss.needs.contains(&Need::Reference));
    alone.map(|loss| of(loss, options(loss))).chain([with_delta]).collect()
}

/// Returns every loss together with all other terms of the actor's loss.
fn complete() -> Vec<PolicyObjective> {
    let among = |objective| PolicyObjective {
        entropy_coeff: 0.01,
        kl_loss: Some((kl::find("k3+").unwrap(), 0.05)),
        top_entropy_quantile: 0.6,
        ..objective
    };
    plain().into_iter().map(among).collect()
}

/// Turns the values of a random batch into log-probabilities and importance weights.
fn realistic(mut c: Columns) -> Columns {
    let [weights, log_prob, old, reference, _, entropy] = &mut c.values;
    weights.iter_mut().for_each(|v| *v = v.exp());
    entropy.iter_mut().for_each(|v| *v += 2.0);
    for column in [log_prob, old, reference] {
        column.iter_mut().for_each(|v| *v = (*v - 2.0).min(-1e-3));
    }
    c
}

/// Gives all tokens of a response the advantage of its first.
fn by_response(mut c: Columns) -> Columns {
    for tokens in sequences(&c.offsets).filter(|tokens| !tokens.is_empty()) {
        let first = c.values[4][tokens.start];
        c.values[4][tokens].fill(first);
    }
    c
}

/// Evaluates the mini-batch in micro-batches of `size` sequences and joins the results.
fn update(objective: &PolicyObjective, mode: &Aggregation, c: &Columns, weighted: bool, size: usize) -> LossResult {
    let [is_weights, log_prob, old, reference, advantages, entropy] = &c.values;
    let mini_batch = MiniBatch {
        offsets: &c.offsets,
        mask: &c.mask,
        log_prob,
        entropy,
        old_log_prob: old,
        advantages,
        ref_log_prob: Some(reference),
        groups: &[],
        options: &objective.options,
    };
    let prepared = objective.prepare(&mini_batch, &mut || 0.5);
    let weights = token_weights(mode, &c.offsets, &c.mask, 8, None, 6);
    let mut all = LossResult::default();
    for bounds in c.offsets.windows(2).collect::<Vec<_>>().chunks(size) {
        let (start, end) = (bounds[0][0], bounds[bounds.len() - 1][1]);
        let offsets: Vec<usize> = std::iter::once(0).chain(bounds.iter().map(|sequence| sequence[1] - start)).collect();
        let part = objective.evaluate(&LossColumns {
            offsets: &offsets,
            mask: &c.mask[start..end],
            log_prob: &log_prob[start..end],
            entropy: &entropy[start..end],
            old_log_prob: Some(&old[start..end]),
            ref_log_prob: Some(&reference[start..end]),
            advantages: &advantages[start..end],
            weights: &weights[start..end],
            penalty_weights: &weights[start..end],
            rollout_is_weights: weighted.then_some(&is_weights[start..end]),
            full_kl: None,
            factor: prepared.factor.as_ref().map(|f| &f[start..end]),
            entropy_mask: prepared.entropy_mask.as_ref().map(|m| &m[start..end]),
            behaviour_log_prob: None,
            entropy_bonus: None,
        });
        all.loss += part.loss;
        all.d_log_prob.extend(part.d_log_prob);
        all.d_entropy.extend(part.d_entropy);
        all.metrics = sums(all.metrics.into_iter().chain(part.metrics));
        for (name, value) in part.terms {
            match all.terms.iter_mut().find(|(n, _)| *n == name) {
                Some((_, sum)) => *sum += value,
                None => all.terms.push((name, value)),
            }
        }
    }
    all
}

/// Adds up the metrics with the same name.
fn sums(metrics: impl Iterator<Item = Metric>) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    for metric in metrics {
        match all.iter_mut().find(|m| m.name == metric.name) {
            Some(own) => (own.sum, own.count) = (own.sum + metric.sum, own.count + metric.count),
            None => all.push(metric),
        }
    }
    all
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + b.abs())
}

/// Checks that loss, terms and metrics agree up to rounding.
fn same_numbers(label: &str, a: &LossResult, b: &LossResult) -> Result<(), TestCaseError> {
    prop_assert!(close(a.loss, b.loss, 1e-5), "{label} loss: {} {}", a.loss, b.loss);
    prop_assert_eq!(a.metrics.len(), b.metrics.len(), "{}", label);
    for (m, n) in a.metrics.iter().zip(&b.metrics) {
        prop_assert!(m.name == n.name && m.count == n.count && close(m.sum, n.sum, 1e-5), "{label}: {m:?} {n:?}");
    }
    for (m, n) in a.terms.iter().zip(&b.terms) {
        prop_assert!(m.0 == n.0 && close(m.1, n.1, 1e-5), "{label}: {m:?} {n:?}");
    }
    Ok(())
}

fn same_column(label: &str, a: &[f32], b: &[f32]) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.len(), b.len());
    for (t, (a, b)) in a.iter().zip(b).enumerate() {
        prop_assert!((a - b).abs() <= 1e-5 * b.abs() + 1e-6, "{label}, token {t}: {a} {b}");
    }
    Ok(())
}

fn mode(name: &str) -> &'static Aggregation {
    aggregate::find(name).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn micro_batches_of_any_size_have_the_same_gradient(batch in batch()) {
        let c = realistic(columns(&batch));
        for objective in complete() {
            for mode in AGGREGATIONS {
                let label = format!("{} {}", objective.policy_loss.name, mode.name);
                let whole = update(&objective, mode, &c, true, batch.len());
                for size in [1, 3] {
                    let parts = update(&objective, mode, &c, true, size);
                    prop_assert_eq!(&parts.d_log_prob, &whole.d_log_prob, "{}", label);
                    prop_assert_eq!(&parts.d_entropy, &whole.d_entropy, "{}", label);
                    prop_assert!(close(parts.loss, whole.loss, 1e-9), "{label}");
                    // A micro-batch without a token has no metrics.
                    for m in &whole.metrics {
                        let own = parts.metrics.iter().find(|own| own.name == m.name).unwrap();
                        prop_assert!(close(own.sum, m.sum, 1e-9) && own.count == m.count, "{label}: {own:?} {m:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_order_of_sequences_does_not_matter(batch in batch(), turn in 0..8usize) {
        let turn = turn % batch.len();
        let mut turned = batch.clone();
        turned.rotate_left(turn);
        let (c, turned) = (realistic(columns(&batch)), realistic(columns(&turned)));
        let cut = c.offsets[turn];
        for objective in complete() {
            let name = objective.policy_loss.name;
            let mut expected = update(&objective, mode("seq-mean-token-mean"), &c, true, 8);
            expected.d_log_prob.rotate_left(cut);
            let ours = update(&objective, mode("seq-mean-token-mean"), &turned, true, 8);
            same_numbers(name, &ours, &expected)?;
            same_column(name, &ours.d_log_prob, &expected.d_log_prob)?;
        }
    }

    /// Masked tokens with any values have no effect, and neither have sequences of masked tokens only.
    #[test]
    fn padding_does_not_matter(batch in batch()) {
        let trained = |s: &Sequence| s.iter().filter(|t| t.0).copied().collect::<Vec<_>>();
        let stripped: Vec<Sequence> = batch.iter().map(trained).filter(|s| !s.is_empty()).collect();
        let (mut padded, stripped) = (realistic(columns(&batch)), realistic(columns(&stripped)));
        for column in &mut padded.values {
            column.iter_mut().zip(&padded.mask).filter(|(_, m)| **m == 0.0).for_each(|(v, _)| *v = f32::NAN);
        }
        for objective in complete() {
            for mode in AGGREGATIONS {
                let label = format!("{} {}", objective.policy_loss.name, mode.name);
                let (a, b) = (update(&objective, mode, &padded, true, 8), update(&objective, mode, &stripped, true, 8));
                let gradient: Vec<f32> =
                    a.d_log_prob.iter().zip(&padded.mask).filter(|(_, m)| **m != 0.0).map(|(g, _)| *g).collect();
                same_column(&label, &gradient, &b.d_log_prob)?;
                prop_assert!(close(a.loss, b.loss, 1e-5), "{label}: {} {}", a.loss, b.loss);
                prop_assert!(a.metrics.iter().all(|m| m.sum.is_finite()), "{label}: {:?}", a.metrics);
                let masked = a.d_log_prob.iter().zip(&padded.mask).filter(|(_, m)| **m == 0.0);
                prop_assert!(masked.into_iter().all(|(g, _)| *g == 0.0), "{label}");
            }
        }
    }

    /// With ρ = 1 a surrogate is within its clip range and its slope is the slope of ρ, so every loss is the policy gradient −A·w:
    /// a gate (sapo) has slope 1 there, a weight (cispo, dppo, vespo) is 1, and a penalty (kl_cov, dro) has its minimum.
    /// The ratio of `rloo` is a product and not a mean, so that it counts each token as often as its response has tokens.
    #[test]
    fn on_policy_every_loss_is_the_policy_gradient(batch in batch()) {
        let mut c = by_response(realistic(columns(&batch)));
        c.values[2] = c.values[1].clone();
        for mut objective in plain() {
            // clip_cov leaves no token out here.
            objective.options = objective.options.with("clip_cov_ub", 0.0);
            let name = objective.policy_loss.name;
            let aggregation = mode(objective.policy_loss.aggregation.unwrap_or("token-mean"));
            let weights = token_weights(aggregation, &c.offsets, &c.mask, 8, None, 6);
            let mut expected: Vec<f32> = c.values[4].iter().zip(&weights).map(|(a, w)| -a * w).collect();
            if name == "rloo" {
                for tokens in sequences(&c.offsets) {
                    let length: f32 = c.mask[tokens.clone()].iter().sum();
                    expected[tokens].iter_mut().for_each(|g| *g *= length);
                }
            }
            same_column(name, &update(&objective, aggregation, &c, false, 8).d_log_prob, &expected)?;
        }
    }

    /// For responses of one token, the ratio of the response is the ratio of the token, and the losses agree.
    #[test]
    fn sequence_losses_of_one_token_responses_are_token_losses(batch in batch()) {
        let shortened = |s: &Sequence| s.iter().take(1).copied().collect::<Vec<_>>();
        let c = realistic(columns(&batch.iter().map(shortened).collect::<Vec<_>>()));
        prop_assume!(!c.mask.is_empty());
        let loss = |name: &str| {
            let mut objective = plain().into_iter().find(|o| o.policy_loss.name == name).unwrap();
            objective.options = objective.options.with("clip_ratio_c", 1e9);
            update(&objective, mode("seq-mean-token-mean"), &c, true, 8)
        };
        let token = loss("vanilla");
        for name in ["gspo", "rloo"] {
            let sequence = loss(name);
            same_column(name, &sequence.d_log_prob, &token.d_log_prob)?;
            same_numbers(name, &LossResult { metrics: sequence.metrics[..2].to_vec(), ..sequence },
                &LossResult { metrics: token.metrics[..2].to_vec(), ..token.clone() })?;
        }
    }

    #[test]
    fn a_share_of_tokens_has_the_top_entropy(batch in batch(), share in 0.0f64..1.0) {
        let c = realistic(columns(&batch));
        let (mask, entropy) = (&c.mask, &c.values[5]);
        let trained = mask.iter().filter(|&&m| m != 0.0).count();
        let chosen = |share: f64| {
            let objective = PolicyObjective { top_entropy_quantile: share, ..plain().remove(0) };
            let [_, log_prob, old_log_prob, _, advantages, entropy] = &c.values;
            let (offsets, options) = (&c.offsets, &objective.options);
            let (ref_log_prob, groups) = (None, &[][..]);
            let x = MiniBatch { offsets, mask, log_prob, entropy, old_log_prob, advantages, ref_log_prob, groups, options };
            objective.prepare(&x, &mut || 0.5).entropy_mask
        };
        prop_assert_eq!(chosen(1.0), None);
        let kept = chosen(share).unwrap();
        prop_assert!(kept.iter().zip(mask).all(|(k, m)| *k <= *m));
        let lowest = entropy.iter().zip(&kept).filter(|(_, k)| **k == 1.0).map(|(h, _)| *h).fold(f32::INFINITY, f32::min);
        let above = entropy.iter().zip(mask).filter(|(h, m)| **m == 1.0 && **h >= lowest).count();
        prop_assert_eq!(kept.iter().filter(|&&k| k == 1.0).count(), above);
        let position = (1.0 - share) * (trained.max(1) - 1) as f64;
        let min = trained - (position.ceil() as usize).min(trained);
        prop_assert!(above == min || (position - position.round()).abs() < 1e-5, "{above} of {trained}, {share}");
    }
}

#[test]
fn nothing_comes_of_masked_or_missing_tokens() {
    let values = || std::array::from_fn(|_| vec![f32::NAN; 3]);
    let masked = Columns { offsets: vec![0, 2, 2, 3], mask: vec![0.0; 3], values: values() };
    let missing = Columns { offsets: vec![0, 0, 0], mask: vec![], values: std::array::from_fn(|_| vec![]) };
    for objective in complete() {
        for mode in AGGREGATIONS {
            let label = format!("{} {}", objective.policy_loss.name, mode.name);
            let result = update(&objective, mode, &masked, true, 8);
            assert_eq!((result.loss, &result.d_log_prob), (0.0, &vec![0.0; 3]), "{label}");
            assert!(result.metrics.iter().all(|m| m.sum == 0.0 && m.count == 0.0), "{label}: {:?}", result.metrics);
            assert_eq!(update(&objective, mode, &missing, true, 8), LossResult::default(), "{label}");
        }
    }
}

/// Evaluates a loss on one response of one token.
fn one_token(objective: &PolicyObjective, log_prob: f32, old: f32, advantage: f32) -> LossResult {
    let values = [1.0, log_prob, old, log_prob, advantage, 1.0].map(|v| vec![v]);
    let c = Columns { offsets: vec![0, 1], mask: vec![1.0], values };
    update(objective, mode("token-mean"), &c, false, 1)
}

/// A token that has already moved past its trust region, in the direction of its advantage, has no gradient; losses that bound
/// the weight of a token instead of dropping it keep one, and all have one towards the old policy.
#[test]
fn clips_silence_what_went_too_far() {
    let soft = ["sapo", "gpg", "kl_cov", "cispo", "dro", "vespo"];
    for mut objective in plain() {
        // The pull towards the policy that generated has a gradient everywhere.
        objective.options = objective.options.with("kl_tau", 0.0);
        let name = objective.policy_loss.name;
        let is_two_sided =
            name == "vanilla" && objective.options.optional("delta").is_some() || ["rollout_is", "ipo"].contains(&name);
        let gradient = |log_prob, old, advantage| one_token(&objective, log_prob, old, advantage).d_log_prob[0];
        for (far, back) in
            [(gradient(-0.1, -1.1, 1.0), gradient(-1.1, -0.1, 1.0)), (gradient(-1.1, -0.1, -1.0), gradient(-0.1, -1.1, -1.0))]
        {
            assert_eq!(
                far != 0.0,
                soft.contains(&name),
                "{name}: gradient {far} beyond the clip; a loss without a clip is in `soft`"
            );
            assert!(back != 0.0 || is_two_sided, "{name}: {back}");
        }
    }
}

#[test]
fn ratios_beyond_floating_point_stay_finite() {
    for objective in plain() {
        for (log_prob, old) in [(-0.1, -500.0), (-500.0, -0.1)] {
            for advantage in [-2.0, 0.0, 2.0] {
                let result = one_token(&objective, log_prob, old, advantage);
                let finite = result.loss.is_finite() && result.d_log_prob[0].is_finite();
                assert!(finite && result.metrics.iter().all(|m| m.sum.is_finite()), "{}: {result:?}", objective.policy_loss.name);
            }
        }
    }
}

#[test]
fn clip_cov_silences_its_share_of_the_candidates_at_random() {
    let loss = find("clip-cov").unwrap();
    let options = built_in(loss).with("clip_cov_ratio", 0.5).with("clip_cov_lb", 0.5).with("clip_cov_ub", 2.0);
    // The means are 0 and −2, the covariances −0.5, 1, 1, 1.5 and 2; the fourth token is beyond the clip range already.
    let x = MiniBatch {
        offsets: &[0, 3, 6],
        mask: &[1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
        log_prob: &[-2.5, -1.0, -3.0, -0.5, f32::NAN, -3.0],
        entropy: &[0.0; 6],
        old_log_prob: &[-2.5, -1.0, -3.0, -1.5, f32::NAN, -3.0],
        advantages: &[1.0, 1.0, -1.0, 1.0, f32::NAN, -2.0],
        ref_log_prob: None,
        groups: &[0, 1],
        options: &options,
    };
    let factor = |number: f64| (loss.prepare.unwrap())(&x, &mut || number).factor;
    assert_eq!(factor(0.0), [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let few = options.clone().with("clip_cov_ratio", 0.2);
    let x = MiniBatch { options: &few, ..x };
    let factor = |number: f64| (loss.prepare.unwrap())(&x, &mut || number).factor;
    assert_eq!(factor(0.0), [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(factor(0.99), [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
}
