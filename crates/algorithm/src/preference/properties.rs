//! Properties of every preference loss, for any values: a new row of the table is tested at once.

use proptest::prelude::*;

use super::*;
use crate::options::{OptionValue, Options};

/// Settings with which every part of a formula takes effect.
fn options(loss: &PreferenceLoss, divergence: &str) -> Options {
    let value = |key: &str| -> Result<OptionValue, String> {
        Ok(match key.rsplit('.').next().unwrap() {
            "beta" => 0.3.into(),
            "label_smoothing" => 0.1.into(),
            "f_divergence_type" => divergence.into(),
            "f_alpha_divergence_coef" => 0.5.into(),
            "discopop_tau" => 0.2.into(),
            "simpo_gamma" => 0.4.into(),
            "cpo_alpha" => 0.7.into(),
            "tpo_alpha" => 0.6.into(),
            "tpo_l_gamma" => 0.5.into(),
            "alpha" => 0.25.into(),
            "desirable_weight" => 1.3.into(),
            "undesirable_weight" => 0.8.into(),
            other => return Err(format!("no value of {other}")),
        })
    };
    Options::read(loss.reads, value).unwrap()
}

/// Every loss of pairs by itself, with every divergence that it supports, and with weights if they are allowed.
fn objectives() -> Vec<(String, PairObjective)> {
    let mut all = Vec::new();
    for loss in PREFERENCE_LOSSES.iter().filter(|loss| !loss.is_of_rows()) {
        let refused = |key: &str| loss.refuses.iter().any(|refusal| refusal.key == key);
        for divergence in F_DIVERGENCES.iter().take(if refused("algorithm.f_divergence_type") { 1 } else { 4 }) {
            let losses = vec![(loss, 0.8, options(loss, divergence.name))];
            let use_weighting = !refused("algorithm.use_weighting");
            all.push((format!("{} {}", loss.name, divergence.name), PairObjective { losses, use_weighting, nll_loss_coef: 0.2 }));
        }
    }
    all
}

fn answer(numbers: [f64; 4], tokens: usize) -> Answer {
    let [log_prob, reference, prompt, typicality] = numbers;
    Answer { log_prob, reference, tokens, plain: 1.1 * log_prob, typicality: 0.1 * typicality, prompt, prompt_tokens: 3 }
}

fn pairs() -> impl Strategy<Value = Vec<AnsweredPair>> {
    let one = || (prop::array::uniform4(-6.0..-0.1f64), 1..9usize).prop_map(|(numbers, tokens)| answer(numbers, tokens));
    prop::collection::vec((one(), one()).prop_map(|(chosen, rejected)| [chosen, rejected]), 1..6)
}

/// Compares a gradient with the slope of the loss between two nearby values of `of`.
fn assert_slope<T: Clone>(
    label: &str,
    at: &T,
    of: fn(&mut T) -> &mut f64,
    gradient: f64,
    loss: impl Fn(&T) -> f64,
) -> Result<(), TestCaseError> {
    let h = 1e-5;
    let moved = |by: f64| {
        let mut at = at.clone();
        *of(&mut at) += by;
        loss(&at)
    };
    // Where the left and right slopes differ, there is a kink: a hinge, or two responses that swap ranks.
    let (left, right) = ((moved(0.0) - moved(-h)) / h, (moved(h) - moved(0.0)) / h);
    if (left - right).abs() < 1e-3 * (1.0 + left.abs()) {
        let slope = (left + right) / 2.0;
        prop_assert!((slope - gradient).abs() < 1e-5 * (1.0 + slope.abs()), "{label}: slope {slope}, gradient {gradient}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn gradients_of_pairs_are_the_slopes_of_the_loss(pairs in pairs()) {
        let whole = PairCounts::count(&pairs);
        for (name, objective) in objectives() {
            let loss = |pairs: &Vec<AnsweredPair>| objective.evaluate(pairs, &whole).loss;
            let grads = objective.evaluate(&pairs, &whole).grads;
            // The first pair represents all pairs, because the order of pairs does not matter.
            assert_slope(&name, &pairs, |p| &mut p[0][0].log_prob, grads[0][0].log_prob, loss)?;
            assert_slope(&name, &pairs, |p| &mut p[0][1].log_prob, grads[0][1].log_prob, loss)?;
            assert_slope(&name, &pairs, |p| &mut p[0][0].plain, grads[0][0].plain, loss)?;
            assert_slope(&name, &pairs, |p| &mut p[0][0].prompt, grads[0][0].prompt, loss)?;
        }
    }

    #[test]
    fn a_mini_batch_of_pairs_is_the_sum_of_its_parts(pairs in pairs(), size in 1..4usize) {
        let whole = PairCounts::count(&pairs);
        for (name, objective) in objectives().into_iter().filter(|(_, objective)| !objective.needs_batch()) {
            let all = objective.evaluate(&pairs, &whole);
            let parts: Vec<_> = pairs.chunks(size).map(|part| objective.evaluate(part, &whole)).collect();
            let (loss, grads) = (parts.iter().map(|part| part.loss).sum::<f64>(), parts.into_iter().flat_map(|part| part.grads));
            prop_assert!((loss - all.loss).abs() <= 1e-12 * all.loss.abs(), "{name}");
            prop_assert_eq!(grads.collect::<Vec<_>>(), all.grads, "{}", name);
        }
    }

    #[test]
    fn rows_have_the_slopes_and_the_parts_of_their_loss(pairs in pairs(), z in 0.0..2.0f64) {
        let rows: Vec<_> = pairs.concat().into_iter().enumerate().map(|(i, answer)| LabelledAnswer { answer, desirable: i % 3 > 0 }).collect();
        for loss in PREFERENCE_LOSSES.iter().filter(|loss| loss.is_of_rows()) {
            let objective = RowObjective { loss, options: options(loss, "reverse_kl") };
            let all = objective.evaluate(&rows, z, rows.len());
            for (i, of) in [(|rows: &mut Vec<LabelledAnswer>| &mut rows[0].answer.log_prob) as fn(&mut Vec<_>) -> &mut f64, |rows| &mut rows[1].answer.log_prob].into_iter().enumerate() {
                assert_slope(loss.name, &rows, of, all.grads[i], |rows| objective.evaluate(rows, z, rows.len()).loss)?;
            }
            if !objective.needs_batch() {
                let parts: f64 = rows.chunks(2).map(|part| objective.evaluate(part, z, rows.len()).loss).sum();
                prop_assert!((parts - all.loss).abs() <= 1e-12 * all.loss.abs(), "{}", loss.name);
            }
        }
    }
}

/// No loss overflows for the least and the most probable responses of a run.
#[test]
fn losses_are_finite_at_any_distance() {
    let far = [-5000.0, -1000.0, -80.0, -1e-8, 0.0];
    for (name, objective) in objectives() {
        for (chosen, rejected) in far.iter().flat_map(|a| far.iter().map(move |b| (*a, *b))) {
            for (ours, theirs) in [(chosen, rejected), (rejected, chosen)] {
                let pair = [answer([chosen, ours, -1.0, -1.0], 3), answer([rejected, theirs, -1.0, -1.0], 1)];
                let Evaluated { loss, grads } = objective.evaluate(&[pair], &PairCounts::count(&[pair]));
                let numbers = grads[0].iter().flat_map(|g| [g.log_prob, g.plain, g.prompt]);
                assert!(
                    loss.is_finite() && numbers.into_iter().all(|g| g.is_finite()),
                    "{name} at {chosen} {rejected}: {loss} {grads:?}"
                );
            }
        }
    }
}

/// A margin that is wrong by far still moves the pair, and one that is right by far does not.
#[test]
fn a_sigmoid_pushes_wrong_pairs_with_all_its_strength() {
    let loss = find("dpo").unwrap();
    let objective =
        PairObjective { losses: vec![(loss, 1.0, options(loss, "reverse_kl"))], use_weighting: false, nll_loss_coef: 0.0 };
    let at = |gap: f64| {
        let pair = [answer([-1.0 + gap, -1.0, 0.0, 0.0], 1), answer([-1.0, -1.0, 0.0, 0.0], 1)];
        let evaluated = objective.evaluate(&[pair], &PairCounts::count(&[pair]));
        (evaluated.loss, evaluated.grads[0].map(|g| g.log_prob))
    };
    assert_eq!(at(-1000.0), (0.3 * 1000.0, [-0.3, 0.3]));
    assert!(at(1000.0).0 < 1e-100 && at(1000.0).1[0] > -1e-100);
}
