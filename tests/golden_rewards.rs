//! Scores of verl's own reward functions, compared with ours; and what verl, TRL and OpenRLHF make of scores on the way to
//! advantages (`shaping.json`, written by `scripts/golden_rewards_shaping.py`).

use std::path::{Path, PathBuf};

use burnish::algorithm::filter_groups::keep_groups;
use burnish::algorithm::pf_ppo;
use burnish::algorithm::reward_shaping::{Extras, NormalizeAdvantages, Overlong, RewardShaping, whiten_rewards};
use burnish::reward::gsm8k::{Method, compute_score};
use burnish::reward::{self, Reward, RewardOptions, Rewards, Runs, Score, ScoreInput, repetition_penalty};
use serde_json::Value;

fn goldens() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from)
}

#[test]
fn golden_rewards_match_verl() {
    let path = goldens().join("rewards.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut checked, mut skipped) = (0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        if !case["fn"].as_str().unwrap().starts_with("gsm8k.") {
            skipped += 1;
            continue;
        }
        let (solution, ground_truth) = (case["args"][0].as_str().unwrap(), &case["args"][1]);
        let (kwargs, expected) = (&case["kwargs"], case["result"].as_f64().unwrap());
        let method = match kwargs["method"].as_str() {
            None | Some("strict") => Method::Strict,
            Some("flexible") => Method::Flexible,
            Some(other) => panic!("unknown method {other}"),
        };
        let number = |name: &str, default: f64| kwargs[name].as_f64().unwrap_or(default);
        let truth = ground_truth.as_str().unwrap();
        let ours = compute_score(solution, truth, method, number("format_score", 0.0), number("score", 1.0));
        assert_eq!(ours, expected, "{line}");
        if kwargs.as_object().unwrap().is_empty() {
            let input = ScoreInput { data_source: "openai/gsm8k", solution, ground_truth, ..Default::default() };
            let scorer = reward::find(input.data_source).unwrap();
            assert_eq!((scorer.run)(&input).unwrap().score.map(f64::from), Some(expected), "{line}");
        }
        checked += 1;
    }
    println!("{checked} golden rewards checked, {skipped} of functions that do not exist here skipped");
    assert!(checked > 0, "{}: no gsm8k case", path.display());
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

/// 1e-6 relative, and `floor` for numbers that cancelled.
fn assert_close(what: &str, ours: &[Option<f64>], golden: &Value, floor: f64) {
    let golden = list(golden, Value::as_f64);
    assert_eq!(ours.len(), golden.len(), "{what}");
    for (i, (a, b)) in ours.iter().zip(golden).enumerate() {
        let close = match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * b.abs() + floor,
            _ => a.is_none() && b.is_none(),
        };
        assert!(close, "{what}, {i}: {a:?}, golden {b:?}");
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
        assert_eq!(score(text, &[])[0].1, case["result"].as_f64(), "{text:?}");
    }
    for case in shaping("repetition_penalty") {
        let ids = list(&case["ids"], |id| id.as_u64().unwrap() as u32);
        let (size, most) = (case["ngram_size"].as_u64().unwrap() as usize, case["max_penalty"].as_f64().unwrap());
        let ours = repetition_penalty::penalty(&ids, size, most);
        assert_close("repetition", &[Some(ours)], &Value::from(vec![case["result"].clone()]), 1e-12);
        if (size, most) == (3, -1.0) {
            assert_eq!(score("", &ids)[1].1, Some(f64::from(ours as f32)), "{ids:?}");
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
        let rewards = Rewards::of(weighted.collect());
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

/// The scores of a case, shaped, and what is logged beside them.
fn shape(shaping: &RewardShaping, case: &Value) -> (Vec<Option<f64>>, Extras) {
    let mut scores = some(numbers(&case["scores"]));
    let lengths = list(&case["lengths"], |n| n.as_u64().unwrap() as usize);
    let extras = shaping.apply(&mut scores, &lengths, &list(&case["ended"], |e| e.as_bool().unwrap()));
    (scores, extras)
}

fn overlong(case: &Value) -> Option<Overlong> {
    Some(Overlong {
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
        // The documented deviation: the others stop at the limit, where the numbers of all are equal.
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
        // It clips only what it normalises.
        let clip = normalize.then_some([-clip, clip]);
        let shaping = RewardShaping { missing_eos_penalty, normalize, clip, ..Default::default() };
        assert_close("TRL", &shape(&shaping, &case).0, &case["result"], 1e-12);
    }
}

#[test]
fn golden_whitening_matches_trl_and_verl() {
    for case in shaping("normalize_advantages") {
        let own = list(&case["advantages"], Value::as_f64);
        // Each response has as many tokens as its place says: how long they are must not matter.
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
            let mut groups: Vec<usize> = keep_groups(&group, &values, range).into_iter().map(|i| group[i]).collect();
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
