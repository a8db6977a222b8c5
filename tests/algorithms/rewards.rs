//! Compares our scores with the scores of verl's reward functions, and the steps between scores and advantages with verl, TRL and
//! OpenRLHF (`shaping.json`, written by `scripts/goldens/golden_rewards_shaping.py`).

use std::path::{Path, PathBuf};

use burnish::algorithm::filter_groups::keep_groups;
use burnish::algorithm::pf_ppo;
use burnish::algorithm::reward_shaping::{Extras, NormalizeAdvantages, OverlongBuffer, RewardShaping, whiten_rewards};
use burnish::reward::gsm8k::{Method, compute_score};
use burnish::reward::{self, FUNCTIONS, NO_ANSWER, Reward, RewardOptions, Rewards, Runs, Score, ScoreInput, repetition_penalty};
use proptest::prelude::*;
use serde_json::Value;

fn goldens() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from)
}

/// The lines of a golden file; none may be empty.
pub(crate) fn golden_lines(name: &str) -> Vec<Value> {
    let path = goldens().join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!cases.is_empty(), "{}", path.display());
    cases
}

/// verl's names of functions, each with our data source or our name of the function.
const VERLS: [(&str, Result<&str, &str>); 6] = [
    ("gsm8k.strict", Ok("openai/gsm8k")),
    ("gsm8k.flexible", Err("gsm8k_flexible")),
    ("math_reward", Ok("HuggingFaceH4/MATH-500")),
    ("math_dapo", Ok("aime2024")),
    ("math_dapo.strict_box", Err("math_dapo_strict_box")),
    ("searchR1.em", Ok("searchR1_nq")),
];

#[test]
fn golden_rewards_match_verl() {
    for case in golden_lines("rewards.jsonl") {
        let (name, solution) = (case["fn"].as_str().unwrap(), case["args"][0].as_str().unwrap());
        let (ground_truth, expected) = (&case["args"][1], &case["result"]);
        if name == "gsm8k.format" {
            let format_score = case["kwargs"]["format_score"].as_f64().unwrap();
            let ours = compute_score(solution, ground_truth.as_str().unwrap(), Method::Strict, format_score, 1.0);
            assert_eq!(Some(ours), expected.as_f64(), "{case}");
            continue;
        }
        let (_, found) = VERLS.iter().find(|(verls, _)| *verls == name).unwrap_or_else(|| panic!("no function {name}"));
        let run = match found {
            Ok(source) => reward::find(source).unwrap().run,
            Err(function) => FUNCTIONS.iter().find(|known| known.name == *function).unwrap().run,
        };
        let score = run(&ScoreInput { solution, ground_truth, ..Default::default() }).unwrap();
        let acc =
            vec![("acc".to_owned(), expected.get("acc").map_or(expected.as_f64(), |acc| Some(f64::from(acc == true))).unwrap())];
        assert_eq!(score.score.map(f64::from), expected.get("score").unwrap_or(expected).as_f64(), "{case}");
        assert_eq!(score.extras, acc, "{case}");
        if let Some(pred) = expected.get("pred") {
            assert_eq!(score.pred.as_deref(), pred.as_str(), "{case}");
        }
    }
}

/// Reward functions of tokens (`scripts/goldens/golden_trl_rewards.py`), compared as float32 to the last bit.
#[test]
fn golden_functions_of_tokens_match_trl() {
    for case in golden_lines("trl-rewards.jsonl") {
        let name = case["fn"].as_str().unwrap();
        let function = FUNCTIONS.iter().find(|known| known.name == name).unwrap_or_else(|| panic!("no function {name}"));
        let given = serde_json::from_value(case["settings"].clone()).unwrap();
        let settings = function.settings(&given).unwrap();
        let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
        let (solution, ground_truth) = (case["text"].as_str().unwrap(), &case["ground_truth"]);
        let input = ScoreInput {
            data_source: "openai/gsm8k",
            solution,
            ground_truth,
            token_ids: Some(&ids),
            settings: &settings,
            ..Default::default()
        };
        let score = (function.run)(&input).unwrap().score.unwrap();
        assert_eq!(score.to_bits(), (case["result"].as_f64().unwrap() as f32).to_bits(), "{score}, {case}");
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |name: &str, given: &[(&str, f64)]| {
        let function = FUNCTIONS.iter().find(|known| known.name == name).unwrap();
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let settings = function.settings(&given);
        let truth = Value::from("1");
        let score = settings.and_then(|settings| {
            (function.run)(&ScoreInput {
                data_source: "openai/gsm8k",
                ground_truth: &truth,
                token_ids: Some(&[1, 2]),
                settings: &settings,
                ..Default::default()
            })
        });
        score.unwrap_err().to_string()
    };
    assert!(refused("soft_overlong_punishment_reward", &[("max_completion_len", 5.0)]).contains("soft_punish_cache"));
    assert!(refused("cosine_scaled_reward", &[]).contains("max_len"));
    assert!(refused("cosine_scaled_reward", &[("max_len", 0.0)]).contains("at least 1"));
    assert!(refused("repetition_penalty_reward", &[("ngram_size", 1.5)]).contains("integer"));
    assert!(refused("repetition_penalty_reward", &[("max_penalty", 0.5)]).contains("positive"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every text can be scored, and every extracted answer is a tail or a box of the text.
    #[test]
    fn every_text_is_scored(pieces in prop::collection::vec(prop_oneof![
        prop::sample::select(vec!["\\boxed{", "\\boxed ", "\\frac", "\\sqrt", "\\text{ ", "{", "}", "$", "Answer:", "<answer>", "</answer>", "#### ", "1/2", "é²"]).prop_map(str::to_owned),
        any::<String>(),
    ], 0..12), truth in any::<String>()) {
        let (solution, targets) = (pieces.concat(), serde_json::json!({"target": [truth]}));
        let truth = Value::from(truth);
        for scorer in reward::SCORERS.iter().filter(|scorer| PORTED.contains(&scorer.name)) {
            let ground_truth = if scorer.name == "search_r1" { &targets } else { &truth };
            let score = (scorer.run)(&ScoreInput { solution: &solution, ground_truth, ..Default::default() }).unwrap();
            let answer = score.pred.unwrap();
            prop_assert!(score.score.is_some_and(|score| (-1.0..=1.0).contains(&score)) && !score.extras.is_empty());
            prop_assert!(answer == NO_ANSWER || scorer.name == "math_dapo" || scorer.name == "gsm8k" || solution.contains(&answer));
            // A text in normal form is equal to itself.
            let boxed = format!("\\boxed{{{answer}}}");
            let text = Value::from(answer.as_str());
            if scorer.name == "math_reward" && closes(&answer) {
                let own = (scorer.run)(&ScoreInput { solution: &boxed, ground_truth: &text, ..Default::default() }).unwrap();
                prop_assert_eq!(own.score, Some(1.0));
            }
        }
    }
}

const PORTED: [&str; 4] = ["gsm8k", "math_reward", "math_dapo", "search_r1"];

/// Returns true if a box around the answer would be the only one, and closed by its own brace.
fn closes(answer: &str) -> bool {
    !answer.contains("boxed") && !answer.contains(['{', '}'])
}

#[test]
fn sources_are_checked_and_only_a_missing_ground_truth_is_abstained_from() {
    assert!(reward::check_sources(["openai/gsm8k", "burnish/arithmetic"]).is_ok());
    let message = reward::check_sources(["openai/gsm8k", "openai/gsm8"]).unwrap_err().to_string();
    assert!(message.contains("\"openai/gsm8\"") && message.contains("Did you mean \"openai/gsm8k\"?"), "{message}");
    let score = |solution, truth: Value| {
        let input = ScoreInput { data_source: "burnish/arithmetic", solution, ground_truth: &truth, ..Default::default() };
        (reward::find(input.data_source).unwrap().run)(&input).map(|score| score.score)
    };
    assert_eq!(score(" 95\n", "95".into()).unwrap(), Some(1.0));
    assert_eq!(score("95 or so", "95".into()).unwrap(), Some(0.0));
    assert_eq!(score("95", Value::Null).unwrap(), None);
    assert!(score("95", 95.into()).unwrap_err().to_string().contains("must be text"));
}

/// The cases of one table of `shaping.json`.
fn shaping(table: &str) -> Vec<Value> {
    let path = goldens().join("shaping.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let goldens: Value = serde_json::from_str(&text).unwrap();
    let cases = goldens[table].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{table}");
    cases
}

fn list<T>(value: &Value, of: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).iter().map(of).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value, |v| v.as_f64().unwrap())
}

/// Compares with a relative tolerance of 1e-6, and an absolute one of `floor` for values that cancelled.
fn assert_close(label: &str, ours: &[Option<f64>], golden: &Value, floor: f64) {
    let golden = list(golden, Value::as_f64);
    assert_eq!(ours.len(), golden.len(), "{label}");
    for (i, (a, b)) in ours.iter().zip(golden).enumerate() {
        let close = match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs() + floor,
            _ => a.is_none() && b.is_none(),
        };
        assert!(close, "{label}, {i}: {a:?}, golden {b:?}");
    }
}

fn some(values: impl IntoIterator<Item = impl Into<f64>>) -> Vec<Option<f64>> {
    values.into_iter().map(|v| Some(v.into())).collect()
}

#[test]
fn golden_reward_functions_match_trl() {
    let names: Vec<String> = vec!["think_format_reward".into(), "repetition_penalty_reward".into()];
    let score = |text: &str, ids: &[u32]| {
        let input = ScoreInput { solution: text, token_ids: Some(ids), ..Default::default() };
        Rewards::new(RewardOptions { names: names.clone(), ..Default::default() }).unwrap().score(&input).unwrap().components
    };
    for case in shaping("think_format") {
        let text = case["text"].as_str().unwrap();
        assert_eq!(score(text, &[])[0].reward, case["result"].as_f64(), "{text:?}");
    }
    for case in shaping("repetition_penalty") {
        let ids = list(&case["ids"], |id| id.as_u64().unwrap() as u32);
        let (size, max) = (case["ngram_size"].as_u64().unwrap() as usize, case["max_penalty"].as_f64().unwrap());
        let ours = repetition_penalty::penalty(&ids, size, max);
        assert_close("repetition", &[Some(ours)], &Value::from(vec![case["result"].clone()]), 1e-12);
        if (size, max) == (3, -1.0) {
            assert_eq!(score("", &ids)[1].reward, Some(f64::from(ours as f32)), "{ids:?}");
        }
    }
}

#[test]
fn golden_weighted_rewards_match_trl() {
    fn component<const K: usize>(input: &ScoreInput) -> anyhow::Result<Score> {
        Ok(input.extra_info[K].as_f64().map_or_else(Score::abstain, |reward| Score::new(reward as f32)))
    }
    let runs = [component::<0>, component::<1>, component::<2>];
    for case in shaping("combined") {
        let functions = ["a", "b", "c"].iter().zip(runs).map(|(name, run)| Reward::new(name, Runs::Rule(run)));
        let weighted = functions.zip(numbers(&case["weights"])).map(|(function, weight)| Reward { weight, ..function });
        let rewards = Rewards::from_functions(weighted.collect());
        let mut scores = list(&case["rewards"], |row| {
            let input = ScoreInput { extra_info: row, ..Default::default() };
            rewards.score(&input).unwrap().score.map(f64::from)
        });
        let clip = case["clip"].as_array().map(|range| [range[0].as_f64().unwrap(), range[1].as_f64().unwrap()]);
        let count = scores.len();
        RewardShaping { clip, ..Default::default() }.apply(&mut scores, &vec![0; count], &vec![true; count]);
        assert_close("weighted rewards", &scores, &case["result"], 1e-6);
    }
}

/// The shaped scores of a case, and their logged metrics.
fn shape(shaping: &RewardShaping, case: &Value) -> (Vec<Option<f64>>, Extras) {
    let mut scores = some(numbers(&case["scores"]));
    let lengths = list(&case["lengths"], |n| n.as_u64().unwrap() as usize);
    let extras = shaping.apply(&mut scores, &lengths, &list(&case["ended"], |e| e.as_bool().unwrap()));
    (scores, extras)
}

fn overlong(case: &Value) -> Option<OverlongBuffer> {
    Some(OverlongBuffer {
        len: case["len"].as_u64()? as usize,
        max_resp_len: case["max_resp_len"].as_u64().unwrap() as usize,
        penalty_factor: case["penalty_factor"].as_f64().unwrap(),
        log: true,
    })
}

#[test]
fn golden_length_penalties_match_verl_openrlhf_and_trl() {
    let mut beyond = 0;
    for case in shaping("overlong") {
        let (scores, extras) = shape(&RewardShaping { overlong: overlong(&case), ..Default::default() }, &case);
        assert_close("verl", &scores, &case["verl"], 1e-12);
        for (name, values) in &extras {
            assert_close(name, values, &case[name], 1e-12);
        }
        assert_eq!(extras.len(), 2);
        // A documented deviation: the other systems stop at the limit, where all give the same values.
        let (before, factor) = (numbers(&case["scores"]), case["penalty_factor"].as_f64().unwrap());
        for (i, length) in numbers(&case["lengths"]).into_iter().enumerate() {
            let golden = |table: &str| case[table][i].as_f64().unwrap();
            let ours = scores[i].unwrap() - before[i];
            let capped = ours.max(-factor);
            beyond += usize::from(length > case["max_resp_len"].as_f64().unwrap());
            assert!((golden("openrlhf") - before[i] - capped).abs() < 1e-12 && (golden("trl") * factor - capped).abs() < 1e-12);
        }
    }
    assert!(beyond > 0);
    for case in shaping("length_penalties") {
        let shaping = RewardShaping { overlong: overlong(&case), stop_properly: case["coef"].as_f64(), ..Default::default() };
        assert_close("OpenRLHF", &shape(&shaping, &case).0, &case["result"], 1e-12);
    }
}

#[test]
fn golden_eos_penalty_normalisation_and_clip_match_trl() {
    for case in shaping("trl_original") {
        let normalize = case["normalize"].as_bool().unwrap();
        let clip = case["clip"].as_f64().unwrap();
        let missing_eos_penalty = case["penalty"].as_f64();
        // It clips only if it normalises.
        let clip = normalize.then_some([-clip, clip]);
        let shaping = RewardShaping { missing_eos_penalty, normalize, clip, ..Default::default() };
        assert_close("TRL", &shape(&shaping, &case).0, &case["result"], 1e-12);
    }
}

#[test]
fn golden_whitening_matches_trl_and_verl() {
    for case in shaping("normalize_advantages") {
        let own = list(&case["advantages"], Value::as_f64);
        // Each response has as many tokens as its position says, because its length must not matter.
        let mut offsets = vec![0];
        offsets.extend((1..=own.len()).scan(0, |end, n| {
            *end += n;
            Some(*end)
        }));
        let tokens = offsets[own.len()];
        let mut column: Vec<f32> = own.iter().enumerate().flat_map(|(i, a)| vec![a.unwrap_or(0.0) as f32; i + 1]).collect();
        let counted: Vec<bool> = own.iter().map(Option::is_some).collect();
        NormalizeAdvantages::Sequence.apply(&offsets, &vec![1.0; tokens], &counted, &mut column);
        let last: Vec<f32> = offsets[1..].iter().map(|end| column[end - 1]).collect();
        assert_close("TRL", &some(last), &case["result"], 1e-6);
        assert!(offsets.windows(2).all(|pair| column[pair[0]..pair[1]].iter().all(|a| *a == column[pair[0]])));
    }
    for case in shaping("whitened") {
        let flat = |key: &str| -> Vec<f32> { list(&case[key], numbers).concat().into_iter().map(|v| v as f32).collect() };
        let golden = |key: &str| Value::from(list(&case[key], numbers).concat());
        let mut offsets = vec![0];
        for row in case["values"].as_array().unwrap() {
            offsets.push(offsets[offsets.len() - 1] + row.as_array().unwrap().len());
        }
        let (mut values, mask) = (flat("values"), flat("masks"));
        assert_close("TRL", &some(whiten_rewards(&values, &mask)), &golden("rewards_trl"), 1e-6);
        NormalizeAdvantages::Token.apply(&offsets, &mask, &vec![true; offsets.len() - 1], &mut values);
        assert_close("verl", &some(values), &golden("advantages_verl"), 1e-6);
    }
}

#[test]
fn golden_group_filters_match_verl_and_openrlhf() {
    for case in shaping("filtered") {
        let groups = list(&case["groups"], numbers);
        let group: Vec<usize> = groups.iter().enumerate().flat_map(|(g, values)| vec![g; values.len()]).collect();
        let values = some(groups.concat());
        let kept = |range| {
            let mut groups: Vec<usize> = keep_groups(&group, &values, range, 0.0).into_iter().map(|i| group[i]).collect();
            groups.dedup();
            Value::from(groups)
        };
        let range = numbers(&case["range"]);
        assert_eq!(kept(None), case["verl"]);
        assert_eq!(kept(Some([range[0], range[1]])), case["openrlhf"]);
    }
}

#[test]
fn golden_pf_ppo_weights_match_verl() {
    for case in shaping("pf_ppo") {
        let method = case["method"].as_str().unwrap();
        let scores = some(numbers(&case["scores"]));
        let weights = pf_ppo::find(method).unwrap().weights(&scores, case["weight_pow"].as_f64().unwrap());
        assert_close(method, &some(weights), &case["weights"], 1e-14);
    }
}
