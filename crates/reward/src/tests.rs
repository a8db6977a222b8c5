//! Rewards of several functions.

use anyhow::{Result, bail};
use proptest::prelude::*;
use serde_json::Value;

use super::functions::all;
use super::*;

fn function(name: &str, weight: f64, run: fn(&ScoreInput) -> Result<Score>) -> Reward {
    Reward { weight, ..Reward::new(name, Runs::Rule(run)) }
}

fn score(rewards: &Rewards, solution: &str, ground_truth: &Value) -> Result<ResponseScore> {
    let data_source = "burnish/arithmetic";
    let model_score = Some(0.25);
    rewards.score(&ScoreInput { data_source, solution, model_score, ground_truth, ..Default::default() })
}

fn named(names: &[String], weights: &[f64]) -> Result<Rewards> {
    Rewards::new(RewardOptions { names: names.to_vec(), weights: weights.to_vec(), ..Default::default() })
}

#[test]
fn functions_are_weighted_and_abstentions_left_out() {
    let names = ["data_source", "integer_format"].map(String::from);
    let rewards = named(&names, &[2.0, -0.5]).unwrap();
    let both = score(&rewards, "95", &"95".into()).unwrap();
    assert_eq!(both.score, Some(1.5));
    let components: Vec<_> = both.components.iter().map(|c| (c.name.as_str(), c.reward)).collect();
    assert_eq!(components, [("data_source", Some(1.0)), ("integer_format", Some(1.0))]);
    assert_eq!((both.extras, both.pred.as_deref()), (vec![("acc".into(), 1.0)], Some("95")));
    let one = score(&rewards, "95", &Value::Null).unwrap();
    assert_eq!((one.score, one.components[0].reward, one.extras.len()), (Some(-0.5), None, 0));
    let none = score(&named(&names[..1], &[]).unwrap(), "95", &Value::Null).unwrap();
    assert_eq!((none.score, none.components[0].reward), (None, None));
}

#[test]
fn a_reward_model_is_one_of_the_functions_and_the_rule_says_what_is_right() {
    let accurate = |names: &[String], weights: &[f64]| {
        let (names, weights) = (names.to_vec(), weights.to_vec());
        Rewards::new(RewardOptions { names, weights, reports_accuracy: true, ..Default::default() }).unwrap()
    };
    let alone = named(&["reward_model".into()], &[]).unwrap();
    let by_model = score(&alone, "94", &"95".into()).unwrap();
    assert_eq!((by_model.score, by_model.extras), (Some(0.25), vec![]));
    let alone = accurate(&["reward_model".into()], &[]);
    for (reply, truth, acc) in [("95", Value::from("95"), vec![1.0]), ("94", "95".into(), vec![0.0]), ("95", Value::Null, vec![])]
    {
        let combined = score(&alone, reply, &truth).unwrap();
        assert_eq!(combined.score, Some(0.25));
        assert_eq!(combined.extras, acc.iter().map(|acc| ("acc".to_owned(), *acc)).collect::<Vec<_>>());
    }
    let names = ["data_source", "reward_model"].map(String::from);
    let both = accurate(&names, &[1.0, 4.0]);
    let both = score(&both, "95", &"95".into()).unwrap();
    assert_eq!((both.score, both.extras), (Some(2.0), vec![("acc".into(), 1.0)]), "the rule is asked once");
}

/// A scorer that runs only to report `acc` calls no service, and a response that it cannot judge has no `acc`.
#[test]
fn a_number_that_is_only_reported_fails_nothing() {
    let names = vec!["reward_model".to_owned()];
    let rewards = Rewards::new(RewardOptions { names, reports_accuracy: true, ..Default::default() }).unwrap();
    for (data_source, truth) in
        [("taco", "{}".into()), ("numina_olympiads", r"\sqrt{2}".into()), ("openai/gsm8k", Value::from(4))]
    {
        let input = ScoreInput {
            data_source,
            solution: r"\boxed{2^{1/2}} #### 4",
            model_score: Some(0.25),
            ground_truth: &truth,
            ..Default::default()
        };
        let combined = rewards.score(&input).unwrap();
        assert_eq!((combined.score, combined.extras), (Some(0.25), vec![]), "{data_source}");
    }
}

#[test]
fn mistakes_are_named() {
    let error = |names: &[&str], weights: &[f64]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        named(&names, weights).err().map(|error| error.to_string()).unwrap()
    };
    assert!(error(&["think_format"], &[]).ends_with("Did you mean \"think_format_reward\"?"));
    assert_eq!(error(&["gsm8k"], &[1.0, 2.0]), "2 weights for 1 reward functions");
    assert!(error(&["gsm8k", "gsm8k"], &[]).contains("twice") && error(&["gsm8k"], &[f64::NAN]).contains("NaN"));
    assert!(error(&[], &[]).contains("data_source"));

    let truth = "95".into();
    let nan = function("broken", 0.0, |_| Ok(Score::new(f32::NAN)));
    assert!(score(&Rewards::from_functions(vec![nan]), "95", &truth).unwrap().score.is_some_and(f32::is_nan));
    let large = function("large", 2.0, |_| Ok(Score::new(f32::MAX)));
    assert_eq!(score(&Rewards::from_functions(vec![large]), "95", &truth).unwrap().score, Some(f32::INFINITY));
    let twice = named(&["data_source".into(), "arithmetic".into()], &[]).unwrap();
    let twice = score(&twice, "95", &truth).unwrap();
    assert_eq!(twice.extras, [("acc".into(), 1.0), ("arithmetic/acc".into(), 1.0)]);
}

/// Two functions: one fails on "bad", and one always returns 1.
#[test]
fn a_failure_is_what_the_policy_says() {
    let reply = |on_error| {
        let failing = function("failing", 3.0, |input| match input.solution {
            "bad" => bail!("out of order"),
            _ => Ok(Score::new(2.0)),
        });
        let fine = function("fine", 1.0, |_| Ok(Score::new(1.0)));
        let rewards = Rewards { on_error, ..Rewards::from_functions(vec![failing, fine]) };
        let inputs = ["good", "bad", "bad"].map(|solution| ScoreInput { solution, ..Default::default() });
        let pending = inputs.iter().map(|input| rewards.begin(input)).collect();
        let scores = rewards.complete(&inputs, pending, |i| format!("response {i}"));
        (scores.map(|scores| scores.iter().map(|c| c.score).collect::<Vec<_>>()), rewards.stats.take().exceptions)
    };
    let (error, _) = reply(OnError::Error);
    assert_eq!(format!("{:#}", error.unwrap_err()), "response 1: reward function \"failing\": out of order");
    let failing =
        function("failing", 1.0, |input| if input.solution == "bad" { bail!("out of order") } else { Ok(Score::new(2.0)) });
    let inputs = ["good", "bad", "bad", "good"].map(|solution| ScoreInput { solution, ..Default::default() });
    let pending = Rewards::from_functions(vec![failing]).begin_all(&inputs, 1).unwrap();
    assert_eq!(
        pending.iter().map(PendingScores::failed).collect::<Vec<_>>(),
        [false, true],
        "no function is called after a failure"
    );
    let (abstained, failures) = reply(OnError::Abstain);
    assert_eq!((abstained.unwrap(), failures), (vec![Some(7.0), Some(1.0), Some(1.0)], 2));
    let (valued, _) = reply(OnError::Value(-1.0));
    assert_eq!(valued.unwrap(), [Some(7.0), Some(-2.0), Some(-2.0)]);
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

    /// Every text over the relevant pieces: the function must agree with the pattern, which is written out by position
    /// here.
    #[test]
    fn think_format_is_the_pattern(pieces in prop::collection::vec(prop::sample::select(vec!["<think>", "</think>", "a", "\n", "<", "think>"]), 0..6)) {
        let text = pieces.concat();
        let opened: Vec<usize> = text.match_indices("<think>").map(|(at, _)| at).collect();
        let closed = text.rfind("</think>");
        let expected = opened == [0] && closed.is_some_and(|at| at >= 7);
        let all = Rewards::from_functions(vec![Reward::new("think", Runs::Rule(think_format::FUNCTION.run))]);
        prop_assert_eq!(score(&all, &text, &Value::Null).unwrap().score, Some(f32::from(u8::from(expected))));
    }

    #[test]
    fn repetition_costs_at_most_the_maximum_and_nothing_without_one(ids in prop::collection::vec(0..4u32, 0..12), n in 1..5usize) {
        let penalty = repetition_penalty::penalty(&ids, n, -2.0);
        prop_assert!(penalty > -2.0 && penalty <= 0.0);
        let distinct: Vec<u32> = (0..ids.len() as u32).collect();
        prop_assert_eq!(repetition_penalty::penalty(&distinct, n, -2.0), 0.0);
        // The same tokens again: only the n-grams across the boundary are new.
        let again = repetition_penalty::penalty(&[ids.clone(), ids.clone()].concat(), n, -2.0);
        prop_assert!(ids.len() < n || again < 0.0);
    }
}
