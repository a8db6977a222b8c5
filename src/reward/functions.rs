//! Reward functions chosen by name, several of them with weights, whatever the row's data source.

use anyhow::{Context, Result, bail, ensure};

use super::{SCORERS, Score, ScoreInput, find, integer_format, repetition_penalty, think_format};
use crate::util::suggest::did_you_mean;

/// A row of [`FUNCTIONS`].
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    pub doc: &'static str,
    pub run: fn(&ScoreInput) -> Result<Score>,
}

/// The functions that are no scorer of a data source. Every scorer can be chosen by its name too.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "data_source",
        doc: "The scorer of the row's data source.\nverl: default_compute_score.",
        run: |input| (find(input.data_source)?.run)(input),
    },
    think_format::FUNCTION,
    repetition_penalty::FUNCTION,
    integer_format::FUNCTION,
];

fn all() -> impl Iterator<Item = Function> {
    FUNCTIONS.iter().copied().chain(SCORERS.iter().map(|s| Function { name: s.name, doc: s.doc, run: s.run }))
}

/// Every name that [`Rewards::new`] knows.
pub fn function_names() -> Vec<&'static str> {
    all().map(|function| function.name).collect()
}

/// Reward functions and their weights.
#[derive(Clone, Debug)]
pub struct Rewards {
    functions: Vec<(Function, f64)>,
}

/// What several functions say about one response.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    /// Σ weight·reward over the functions that did not abstain; `None` if all of them did.
    pub score: Option<f32>,
    /// The reward of each function, without its weight, in the order they were named.
    pub components: Vec<(String, Option<f64>)>,
    /// The numbers that the functions return beside their rewards.
    pub extras: Vec<(String, f64)>,
    /// The answer that the first function to look for one has found.
    pub pred: Option<String>,
}

impl Rewards {
    /// Functions of your own, with their weights; names must differ.
    pub fn of(functions: Vec<(Function, f64)>) -> Self {
        Self { functions }
    }

    /// `weights` has one number per name, or is empty: then every weight is 1.
    ///
    /// # Errors
    /// No name, one that is unknown or named twice, another number of weights than of names, a weight that is not finite.
    pub fn new(names: &[String], weights: &[f64]) -> Result<Self> {
        ensure!(!names.is_empty(), "no reward function is named; there are {}", function_names().join(", "));
        let counts = (weights.len(), names.len());
        ensure!(weights.is_empty() || counts.0 == counts.1, "{} weights for {} reward functions", counts.0, counts.1);
        let mut functions: Vec<(Function, f64)> = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let Some(function) = all().find(|function| function.name == name) else {
                let known = function_names();
                let hint = did_you_mean(name, known.iter().copied());
                bail!("no reward function is called \"{name}\"; there are {}.{hint}", known.join(", "))
            };
            ensure!(functions.iter().all(|(known, _)| known.name != name), "the reward function \"{name}\" is named twice");
            let weight = weights.get(i).copied().unwrap_or(1.0);
            ensure!(weight.is_finite(), "the weight of the reward function \"{name}\" is {weight}");
            functions.push((function, weight));
        }
        Ok(Self::of(functions))
    }

    /// The name and weight of each function, in order.
    pub fn weights(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.functions.iter().map(|(function, weight)| (function.name, *weight))
    }

    /// The weighted sum of what the functions say about one response (TRL: nansum over functions; one that all of them
    /// abstain from has no score).
    ///
    /// # Errors
    /// A function that fails or returns a number that is not finite, which is named; two functions with the same extra.
    pub fn score(&self, input: &ScoreInput) -> Result<Combined> {
        let (mut components, mut extras, mut pred, mut sum) = (Vec::new(), Vec::new(), None, None);
        for (function, weight) in &self.functions {
            let name = function.name;
            let score = (function.run)(input).with_context(|| format!("reward function \"{name}\""))?;
            if let Some(reward) = score.score {
                ensure!(reward.is_finite(), "reward function \"{name}\" returned {reward}");
                sum = Some(sum.unwrap_or(0.0) + weight * f64::from(reward));
            }
            components.push((name.to_owned(), score.score.map(f64::from)));
            pred = pred.or(score.pred);
            for (extra, value) in score.extras {
                let taken = extras.iter().any(|(known, _)| *known == extra);
                ensure!(!taken, "reward function \"{name}\" returns \"{extra}\" too, as one before it does: use one of them");
                extras.push((extra, value));
            }
        }
        let score = sum.map(|sum| sum as f32);
        ensure!(score.is_none_or(f32::is_finite), "the weighted sum of the rewards is {score:?}");
        Ok(Combined { score, components, extras, pred })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn function(name: &'static str, run: fn(&ScoreInput) -> Result<Score>) -> Function {
        Function { name, doc: "", run }
    }

    fn score(rewards: &Rewards, solution: &str, ground_truth: &Value) -> Result<Combined> {
        let data_source = "burnish/arithmetic";
        rewards.score(&ScoreInput { data_source, solution, token_ids: None, ground_truth, extra_info: &Value::Null })
    }

    #[test]
    fn functions_are_weighted_and_abstentions_left_out() {
        let names = ["data_source", "integer_format"].map(String::from);
        let rewards = Rewards::new(&names, &[2.0, -0.5]).unwrap();
        let both = score(&rewards, "95", &"95".into()).unwrap();
        assert_eq!(both.score, Some(1.5));
        assert_eq!(both.components, [("data_source".into(), Some(1.0)), ("integer_format".into(), Some(1.0))]);
        assert_eq!((both.extras, both.pred.as_deref()), (vec![("acc".into(), 1.0)], Some("95")));
        let one = score(&rewards, "95", &Value::Null).unwrap();
        assert_eq!((one.score, one.components[0].1, one.extras.len()), (Some(-0.5), None, 0));
        let none = score(&Rewards::new(&names[..1], &[]).unwrap(), "95", &Value::Null).unwrap();
        assert_eq!((none.score, none.components[0].1), (None, None));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |names: &[&str], weights: &[f64]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Rewards::new(&names, weights).unwrap_err().to_string()
        };
        assert!(error(&["think_format"], &[]).ends_with("Did you mean \"think_format_reward\"?"));
        assert_eq!(error(&["gsm8k"], &[1.0, 2.0]), "2 weights for 1 reward functions");
        assert!(error(&["gsm8k", "gsm8k"], &[]).contains("twice") && error(&["gsm8k"], &[f64::NAN]).contains("NaN"));
        assert!(error(&[], &[]).contains("data_source"));

        let truth = "95".into();
        let message = |parts: &[(Function, f64)]| format!("{:#}", score(&Rewards::of(parts.to_vec()), "95", &truth).unwrap_err());
        let nan = function("broken", |_| Ok(Score::new(f32::NAN)));
        assert_eq!(message(&[(nan, 0.0)]), "reward function \"broken\" returned NaN");
        let failing = function("failing", |_| bail!("out of order"));
        assert_eq!(message(&[(failing, 1.0)]), "reward function \"failing\": out of order");
        let large = function("large", |_| Ok(Score::new(f32::MAX)));
        assert!(message(&[(large, 2.0)]).contains("inf"));
        let twice = Rewards::new(&["data_source".into(), "arithmetic".into()], &[]).unwrap();
        assert!(score(&twice, "95", &truth).unwrap_err().to_string().contains("\"acc\""));
    }

    #[test]
    fn every_name_is_unique_and_documented() {
        let mut names = function_names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|f| f.doc.lines().next().is_some_and(|line| line.len() > 10)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Every text over the pieces that matter: the rule is that of the pattern, spelled out by position.
        #[test]
        fn think_format_is_the_pattern(pieces in prop::collection::vec(prop::sample::select(vec!["<think>", "</think>", "a", "\n", "<", "think>"]), 0..6)) {
            let text = pieces.concat();
            let opened: Vec<usize> = text.match_indices("<think>").map(|(at, _)| at).collect();
            let closed = text.rfind("</think>");
            let expected = opened == [0] && closed.is_some_and(|at| at >= 7);
            let all = Rewards::of(vec![(think_format::FUNCTION, 1.0)]);
            prop_assert_eq!(score(&all, &text, &Value::Null).unwrap().score, Some(f32::from(u8::from(expected))));
        }

        #[test]
        fn repetition_costs_at_most_the_maximum_and_nothing_without_one(ids in prop::collection::vec(0..4u32, 0..12), n in 1..5usize) {
            let penalty = repetition_penalty::penalty(&ids, n, -2.0);
            prop_assert!(penalty > -2.0 && penalty <= 0.0);
            let distinct: Vec<u32> = (0..ids.len() as u32).collect();
            prop_assert_eq!(repetition_penalty::penalty(&distinct, n, -2.0), 0.0);
            // One more time the same from the start: nothing new but the runs across the seam.
            let again = repetition_penalty::penalty(&[ids.clone(), ids.clone()].concat(), n, -2.0);
            prop_assert!(ids.len() < n || again < 0.0);
        }
    }
}
