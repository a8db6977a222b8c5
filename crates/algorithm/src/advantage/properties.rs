//! Properties of every estimator, for any values, and cases that the goldens do not cover.

use proptest::prelude::*;

use super::{AdvantageInput, Component, ESTIMATORS, Estimator, find};
use crate::options::Options;
use crate::sequences;
use burnish_registry::Need;

/// Values of a token, each in 0..1: score, KL term, value, log π, the part of Σ π² other than π², weight.
type Token = (bool, [f32; 6]);

/// One response.
#[derive(Clone, Debug)]
struct Response {
    tokens: Vec<Token>,
    group: usize,
    scored: bool,
    greedy: f32,
    components: [Option<f64>; 2],
}

fn responses(tokens: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Response>> {
    let token = (prop::bool::weighted(0.8), prop::array::uniform6(0.0f32..1.0));
    let component = || prop::option::weighted(0.8, -2.0f64..2.0);
    let rest = (0..3usize, prop::bool::weighted(0.8), 0.0f32..1.0, [component(), component()]);
    let response = (prop::collection::vec(token, tokens), rest)
        .prop_map(|(tokens, (group, scored, greedy, components))| Response { tokens, group, scored, greedy, components });
    prop::collection::vec(response, 1..9)
}

/// The columns of a batch.
struct Columns {
    offsets: Vec<usize>,
    mask: Vec<f32>,
    scores: Vec<f32>,
    rewards: Vec<f32>,
    /// Values, log π, Σ π², weights.
    more: [Vec<f32>; 4],
    group: Vec<usize>,
    greedy: Vec<f32>,
    of_roles: Vec<f64>,
    components: Vec<Component>,
}

impl Columns {
    fn new(batch: &[Response]) -> Self {
        let tokens = || batch.iter().flat_map(|r| &r.tokens);
        let column = |f: fn(&[f32; 6]) -> f32| tokens().map(|(_, v)| f(v)).collect::<Vec<f32>>();
        let ends = batch.iter().scan(0, |end, r| {
            *end += r.tokens.len();
            Some(*end)
        });
        let component =
            |k: usize, weight| Component { name: k.to_string(), weight, values: batch.iter().map(|r| r.components[k]).collect() };
        let scores = column(|v| v[0] - 0.4);
        let kl = tokens().map(|(trained, v)| if *trained { 0.1 * v[1] } else { 0.0 });
        Self {
            offsets: std::iter::once(0).chain(ends).collect(),
            mask: tokens().map(|&(trained, _)| f32::from(u8::from(trained))).collect(),
            rewards: scores.iter().zip(kl).map(|(s, kl)| s - kl).collect(),
            scores,
            more: [
                column(|v| v[2]),
                column(|v| -3.0 * v[3] - 0.1),
                column(|v| {
                    let pi = (-3.0 * v[3] - 0.1).exp();
                    pi * pi + v[4] * (1.0 - pi)
                }),
                column(|v| 2.0 * v[5]),
            ],
            group: batch.iter().map(|r| r.group).collect(),
            greedy: batch.iter().map(|r| r.greedy).collect(),
            of_roles: batch.iter().map(|r| 0.5 * f64::from(r.greedy)).collect(),
            components: vec![component(0, 1.0), component(1, 0.5)],
        }
    }

    fn input(&self, estimator: &Estimator) -> AdvantageInput<'_> {
        let [values, old_log_prob, sum_pi_squared, weights] = &self.more;
        AdvantageInput {
            offsets: &self.offsets,
            rewards: &self.rewards,
            scores: &self.scores,
            mask: &self.mask,
            group: &self.group,
            values: Some(values),
            reward_baselines: Some(&self.greedy),
            role_baselines: Some(&self.of_roles),
            old_log_prob: Some(old_log_prob),
            sum_pi_squared: Some(sum_pi_squared),
            rollout_is_weights: Some(weights),
            components: &self.components,
            options: Options::built_in(estimator.reads).with("gamma", 0.9).with("lam", 0.8),
        }
    }
}

/// Returns advantages and returns of the trained tokens of each response.
fn trained(estimator: &Estimator, batch: &[Response]) -> Vec<Vec<f32>> {
    let c = Columns::new(batch);
    let output = estimator.estimate(&c.input(estimator), &batch.iter().map(|r| r.scored).collect::<Vec<_>>());
    let rows = sequences(&c.offsets).map(|tokens| {
        let trained = tokens.filter(|&t| c.mask[t] != 0.0);
        trained.flat_map(|t| [output.advantages[t], output.returns[t]]).collect()
    });
    rows.collect()
}

fn close(estimator: &Estimator, ours: &[Vec<f32>], expected: &[Vec<f32>]) -> Result<(), TestCaseError> {
    prop_assert_eq!(ours.len(), expected.len());
    for (a, b) in ours.iter().zip(expected) {
        prop_assert_eq!(a.len(), b.len());
        let equal = a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()));
        prop_assert!(equal, "{}: {a:?} {b:?}", estimator.name);
    }
    Ok(())
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn permuted_sequences_have_permuted_advantages(batch in responses(0..7), turn in 0..9usize) {
        let permuted = |rows: &mut Vec<Response>| { let turn = turn % rows.len(); rows.rotate_left(turn); rows[turn..].reverse(); };
        let mut turned = batch.clone();
        permuted(&mut turned);
        for estimator in ESTIMATORS {
            let mut expected = trained(estimator, &batch);
            let turn = turn % batch.len();
            expected.rotate_left(turn);
            expected[turn..].reverse();
            close(estimator, &trained(estimator, &turned), &expected)?;
        }
    }

    /// Tokens of a tool, without reward and with arbitrary other values, change nothing: at the end for all estimators, and
    /// anywhere for estimators that do not count positions.
    #[test]
    fn masked_tokens_do_not_matter(batch in responses(0..7), places in prop::collection::vec(0..7usize, 9)) {
        // A score of 0 becomes 0.4.
        let tool = (false, [0.4, f32::NAN, f32::NAN, f32::NAN, f32::NAN, f32::NAN]);
        for estimator in ESTIMATORS {
            let positions_count = ["optimal_token_baseline", "reinforce"].contains(&estimator.name);
            let mut longer = batch.clone();
            for (response, &place) in longer.iter_mut().zip(&places) {
                let place = if positions_count { response.tokens.len() } else { place.min(response.tokens.len()) };
                response.tokens.insert(place, tool);
            }
            close(estimator, &trained(estimator, &longer), &trained(estimator, &batch))?;
        }
    }

    /// Unscored responses have advantage 0. So has a response that is the only scored one of its group, if the estimator compares
    /// within groups. The other advantages are as if all of these responses were missing.
    #[test]
    fn abstentions_change_nobody_elses_numbers(mut batch in responses(0..7)) {
        for estimator in ESTIMATORS {
            let of_group = |r: &Response| batch.iter().filter(|o| o.group == r.group).count();
            let scored_of_group = |r: &Response| batch.iter().filter(|o| o.group == r.group && o.scored).count();
            let counts = |r: &Response| r.scored && (!estimator.needs(Need::Group) || of_group(r) == 1 || scored_of_group(r) > 1);
            let without: Vec<Response> = batch.iter().filter(|r| counts(r)).cloned().collect();
            let mut rest = trained(estimator, &without).into_iter();
            let zeros = |r: &Response| vec![0.0; 2 * r.tokens.iter().filter(|t| t.0).count()];
            let expected: Vec<Vec<f32>> =
                batch.iter().map(|r| if counts(r) { rest.next().unwrap() } else { zeros(r) }).collect();
            prop_assert_eq!(trained(estimator, &batch), expected.clone(), "{}", estimator.name);
        }
        let before: Vec<_> = ESTIMATORS.iter().map(|e| trained(e, &batch)).collect();
        for token in batch.iter_mut().filter(|r| !r.scored).flat_map(|r| &mut r.tokens) {
            token.1 = [f32::NAN; 6];
        }
        for (estimator, before) in ESTIMATORS.iter().zip(before) {
            prop_assert_eq!(trained(estimator, &batch), before, "{}", estimator.name);
        }
    }

    /// Advantages are finite, and 0 where masked, with missing or equal scores too.
    #[test]
    fn degenerate_batches_have_finite_advantages(batch in responses(0..3)) {
        type Change = fn(usize, &mut Response);
        let changes: [(&str, Change); 7] = [
            ("unchanged", |_, _| ()),
            ("empty", |_, r| r.tokens.clear()),
            ("one of them empty", |i, r| if i == 0 { r.tokens.clear() }),
            ("masked", |_, r| r.tokens.iter_mut().for_each(|t| t.0 = false)),
            ("one token", |i, r| { r.tokens.truncate(usize::from(i == 0)); r.tokens.iter_mut().for_each(|t| t.0 = true) }),
            ("equal", |_, r| { r.tokens.iter_mut().for_each(|t| t.1 = [0.5; 6]); r.components = [Some(0.3), None] }),
            ("groups of one", |i, r| r.group = i),
        ];
        for (label, change) in changes {
            for scored in [None, Some(true), Some(false)] {
                let mut batch = batch.clone();
                batch.iter_mut().enumerate().for_each(|(i, r)| { change(i, r); r.scored = scored.unwrap_or(r.scored) });
                let c = Columns::new(&batch);
                let scored: Vec<bool> = batch.iter().map(|r| r.scored).collect();
                for estimator in ESTIMATORS {
                    let output = estimator.estimate(&c.input(estimator), &scored);
                    for column in [output.advantages, output.returns] {
                        prop_assert_eq!(column.len(), c.mask.len());
                        let fine = column.iter().zip(&c.mask).all(|(a, &m)| if m == 0.0 { *a == 0.0 } else { a.is_finite() });
                        prop_assert!(fine, "{} {label}: {column:?}", estimator.name);
                    }
                }
            }
        }
    }

    /// Responses of equal score have advantage 0, if responses to a prompt are compared by one value each.
    #[test]
    fn equal_scores_have_no_advantage(mut batch in responses(1..7), score in 0.0f32..1.0) {
        for response in &mut batch {
            (response.group, response.scored, response.components) = (0, true, [Some(f64::from(score)), Some(0.3)]);
            response.tokens.iter_mut().for_each(|(trained, v)| (*trained, v[0], v[1]) = (true, 0.4, 0.0));
            response.tokens.last_mut().unwrap().1[0] = score;
        }
        let alone = batch.len() == 1;
        for estimator in ESTIMATORS.iter().filter(|e| e.needs(Need::Group) && !e.needs(Need::SumPiSquared) && !alone) {
            let c = Columns::new(&batch);
            let advantages = (estimator.run)(&c.input(estimator)).advantages;
            prop_assert!(advantages.iter().all(|a| a.abs() < 1e-4), "{}: {advantages:?}", estimator.name);
        }
    }

    /// Advantages that are centred over a group, or over the tokens of a batch, sum to 0 there.
    #[test]
    fn centred_advantages_sum_to_zero(mut batch in responses(1..7)) {
        for response in &mut batch {
            response.scored = true;
            response.tokens[0].0 = true;
            response.tokens.iter_mut().for_each(|t| t.1[1] = 0.0);
        }
        let c = Columns::new(&batch);
        let advantages = |name: &str| {
            let estimator = find(name).unwrap();
            (estimator.run)(&c.input(estimator)).advantages
        };
        let lengths: Vec<f64> = sequences(&c.offsets).map(|t| c.mask[t].iter().map(|&m| f64::from(m)).sum()).collect();
        for name in ["rloo", "grpo", "gpg", "trl_grpo", "opo", "dr_grpo", "group_norm", "openrlhf_rloo"] {
            let own = advantages(name);
            for group in c.input(find(name).unwrap()).groups().iter().filter(|group| group.len() > 1) {
                let weight = |i: usize| if name == "opo" { lengths[i] } else { 1.0 };
                let sum: f64 = group.iter().map(|&i| weight(i) * f64::from(own[c.offsets[i]])).sum();
                prop_assert!(sum.abs() < 1e-4, "{name}: {sum}");
            }
        }
        for name in ["gae", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "gdpo", "reinforce", "reinforce_baseline"] {
            let own = advantages(name);
            let sum: f64 = own.iter().map(|&a| f64::from(a)).sum();
            prop_assert!(sum.abs() < 1e-4, "{name}: {sum}");
        }
        let sum: f64 = advantages("trl_gdpo").iter().zip(first_of_each(&c)).filter(|(_, first)| *first).map(|(&a, _)| f64::from(a)).sum();
        prop_assert!(sum.abs() < 1e-4, "trl_gdpo: {sum}");
    }

    /// ρ² multiplies the weight of a token: where π is 0, a changed Σ π² has the same effect.
    #[test]
    fn weights_of_the_rollout_correction_count_squared(batch in responses(0..7)) {
        let mut c = Columns::new(&batch);
        c.more[1].fill(-200.0);
        let squares: Vec<f32> = c.more[2].iter().zip(&c.more[3]).map(|(s, w)| (1.0 + s) * w * w - 1.0).collect();
        for name in ["optimal_token_baseline", "tir_optimal_token_baseline"] {
            let estimator = find(name).unwrap();
            let run = estimator.run;
            let reported = run(&AdvantageInput { sum_pi_squared: Some(&squares), rollout_is_weights: None, ..c.input(estimator) });
            for (a, b) in run(&c.input(estimator)).advantages.iter().zip(reported.advantages) {
                prop_assert!((a - b).abs() <= 1e-3, "{name}: {a} {b}");
            }
        }
    }
}

fn first_of_each(c: &Columns) -> Vec<bool> {
    let mut first = vec![false; c.mask.len()];
    c.offsets[..c.offsets.len() - 1].iter().for_each(|&start| first[start] = true);
    first
}

/// A batch of one response of one token, of score 2 and greedy score 0.5: estimators without a baseline keep the score.
#[test]
fn groups_of_one_keep_their_score_or_have_none() {
    let components = [Component { name: "only".to_owned(), weight: 1.0, values: vec![Some(2.0)] }];
    for estimator in ESTIMATORS {
        let output = (estimator.run)(&AdvantageInput {
            offsets: &[0, 1],
            rewards: &[2.0],
            scores: &[2.0],
            mask: &[1.0],
            group: &[7],
            values: Some(&[0.3]),
            reward_baselines: Some(&[0.5]),
            role_baselines: Some(&[0.25]),
            old_log_prob: Some(&[-1.0]),
            sum_pi_squared: Some(&[0.4]),
            components: &components,
            options: Options::built_in(estimator.reads),
            ..Default::default()
        });
        let expected = match estimator.name {
            "rloo" | "grpo" | "opo" | "gpg" | "optimal_token_baseline" | "tir_optimal_token_baseline" => 2.0,
            "remax" | "a2po" => 1.5,
            "rae" => 1.75,
            _ => 0.0,
        };
        assert!((output.advantages[0] - expected).abs() < 1e-5, "{}: {:?}", estimator.name, output.advantages);
    }
}

#[test]
fn estimators_say_where_they_come_from_and_when_to_use_them() {
    for Estimator { name, doc, .. } in ESTIMATORS {
        assert!((doc.contains("\nPaper: ") || doc.contains("\nSource: ")) && doc.contains("\nWhen: "), "{name}: {doc}");
        assert!(doc.lines().skip(1).all(|line| line.contains(": ")), "{name}: {doc}");
    }
}
