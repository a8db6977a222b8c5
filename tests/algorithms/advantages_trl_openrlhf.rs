//! Advantages of TRL's trainers and of OpenRLHF, from `advantages-trl-openrlhf.json` (`scripts/goldens/golden_advantages.py`).

use burnish::algorithm::advantage::{self, AdvantageInput, AdvantageOutput, Component};
use burnish::algorithm::kl::{self, KlController, apply_kl_in_reward};
use serde_json::Value;

use crate::cases::{assert_close, built_in, golden_file, number, rows};
use crate::peers_2026::covers;

const FILE: &str = "advantages-trl-openrlhf.json";

/// The intended deviations: abstentions, entry, and reason.
const NOT_MATCHED: &[(&str, &str, &str)] = &[
    ("alone", "trl_grpo|scale_rewards=batch", "a response left alone in its group counts in TRL's deviation of the batch"),
    ("alone", "trl_gdpo", "a response left alone in its group counts in TRL's deviation of the batch"),
];

/// Padded rows as ragged columns.
struct Rows {
    offsets: Vec<usize>,
    exists: Vec<Vec<f64>>,
}

impl Rows {
    fn new(exists: &Value) -> Self {
        let exists = rows(exists);
        let ends = exists.iter().scan(0, |end, row| {
            *end += row.iter().filter(|&&e| e != 0.0).count();
            Some(*end)
        });
        Self { offsets: std::iter::once(0).chain(ends).collect(), exists }
    }

    fn column(&self, padded: &Value) -> Vec<f32> {
        let rows = rows(padded);
        let tokens = rows.iter().flatten().zip(self.exists.iter().flatten());
        tokens.filter(|&(_, &exists)| exists != 0.0).map(|(&v, _)| v as f32).collect()
    }

    /// A column with one value per sequence, on its last token.
    fn on_last(&self, numbers: &[f64]) -> Vec<f32> {
        let mut column = vec![0.0; self.offsets[numbers.len()]];
        self.offsets[1..].iter().zip(numbers).for_each(|(&end, &number)| column[end - 1] = number as f32);
        column
    }
}

fn groups(case: &Value, sequences: usize) -> Vec<usize> {
    (0..sequences).map(|i| i / number(&case["num_generations"]) as usize).collect()
}

#[test]
fn golden_advantages_of_trl() {
    let goldens = golden_file(FILE);
    let mut differing = 0;
    for (index, case) in goldens["trl"].as_array().unwrap().iter().enumerate() {
        for (key, golden) in case["advantage"].as_object().unwrap() {
            let columns = Rows::new(&case["mask"]);
            let ours = trl(case, &columns, key);
            let label = format!("case {index} {key}");
            // One advantage per sequence, repeated on each of its tokens.
            let golden: Vec<f64> = golden.as_array().unwrap().iter().map(number).collect();
            let lengths = columns.offsets.windows(2).map(|pair| pair[1] - pair[0]);
            let golden: Vec<f32> = golden.iter().zip(lengths).flat_map(|(&a, n)| vec![a as f32; n]).collect();
            if NOT_MATCHED.iter().any(|row| case["abstentions"] == row.0 && key == row.1) {
                let difference = ours.advantages.iter().zip(&golden).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(difference > 1e-3, "{label} is matched");
                differing += 1;
            } else {
                assert_close(&label, &ours.advantages, &golden);
            }
        }
    }
    assert_eq!(differing, NOT_MATCHED.len());
}

/// Runs the estimator `key` on a case where reward functions may abstain.
fn trl(case: &Value, columns: &Rows, key: &str) -> AdvantageOutput {
    let (name, setting) = key.split_once('|').unwrap_or((key, ""));
    let given: Vec<Vec<Option<f64>>> = case["rewards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_array().unwrap().iter().map(Value::as_f64).collect())
        .collect();
    let weights: Vec<f64> = case["weights"].as_array().unwrap().iter().map(number).collect();
    let components: Vec<Component> = weights
        .iter()
        .enumerate()
        .map(|(k, &weight)| Component { name: k.to_string(), weight, values: given.iter().map(|row| row[k]).collect() })
        .collect();
    let total = |row: &Vec<Option<f64>>| row.iter().zip(&weights).map(|(r, w)| w * r.unwrap_or(0.0)).sum();
    let scores = columns.on_last(&given.iter().map(total).collect::<Vec<f64>>());
    let scored: Vec<bool> = given.iter().map(|row| row.iter().any(Option::is_some)).collect();
    let mask = columns.column(&case["mask"]);
    let [old, reference] = ["old_log_probs", "ref_log_probs"].map(|key| columns.column(&case[key]));
    let beta = setting.strip_prefix("beta=").map_or(0.0, |beta| beta.parse().unwrap());
    let mut controller = KlController::Fixed { coef: beta };
    let k1 = kl::find("k1").unwrap();
    let rewards =
        apply_kl_in_reward(&columns.offsets, &mask, &scores, &k1.values(&old, &reference, None), &mut controller).rewards;
    let estimator = advantage::find(name).unwrap();
    let scale_rewards = setting.strip_prefix("scale_rewards=").unwrap_or("group");
    let input = AdvantageInput {
        offsets: &columns.offsets,
        rewards: &rewards,
        scores: &scores,
        mask: &mask,
        group: &groups(case, given.len()),
        components: &components,
        options: built_in(estimator.reads).with("scale_rewards", scale_rewards),
        ..Default::default()
    };
    estimator.estimate(&input, &scored)
}

#[test]
fn golden_advantages_of_openrlhf() {
    let goldens = golden_file(FILE);
    for (index, case) in goldens["openrlhf"].as_array().unwrap().iter().enumerate() {
        let columns = Rows::new(&case["attention_mask"]);
        let mask = columns.column(&case["response_mask"]);
        let scores: Vec<f64> = case["scores"].as_array().unwrap().iter().map(number).collect();
        let scores = columns.on_last(&scores);
        let beta = number(&case["kl_coef"]) as f32;
        let kl = columns.column(&case["kl"]);
        let rewards: Vec<f32> = (0..mask.len()).map(|t| scores[t] - beta * kl[t] * mask[t]).collect();
        for (key, golden) in case["advantage"].as_object().unwrap() {
            let name = if key == "rloo" { "openrlhf_rloo" } else { key };
            let estimator = advantage::find(name).unwrap();
            let output = (estimator.run)(&AdvantageInput {
                offsets: &columns.offsets,
                rewards: &rewards,
                scores: &scores,
                mask: &mask,
                group: &groups(case, columns.exists.len()),
                options: built_in(estimator.reads).with("gamma", number(&case["gamma"])),
                ..Default::default()
            });
            assert_close(&format!("case {index} {key} advantages"), &output.advantages, &columns.column(&golden["advantages"]));
            assert_close(&format!("case {index} {key} returns"), &output.returns, &columns.column(&golden["returns"]));
        }
    }
}

/// Every estimator with a counterpart in TRL or OpenRLHF is compared in every case.
#[test]
fn every_estimator_of_trl_and_openrlhf_has_goldens() {
    let goldens = golden_file(FILE);
    for (line, table) in [("\nTRL: ", "trl"), ("\nOpenRLHF: ", "openrlhf")] {
        let cases = goldens[table].as_array().unwrap();
        assert!(!cases.is_empty());
        // Estimators of 2026 have their values in another file.
        for estimator in advantage::ESTIMATORS.iter().filter(|e| e.doc.contains(line) && !covers(e.name)) {
            let own = |key: &str| key.split('|').next().unwrap() == estimator.name.trim_start_matches("openrlhf_");
            assert!(
                cases.iter().all(|case| case["advantage"].as_object().unwrap().keys().any(|key| own(key))),
                "{}",
                estimator.name
            );
        }
    }
}
