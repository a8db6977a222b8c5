//! Aggregations of the loss, filters, and shaping of scores.

use burnish::algorithm::advantage::RoleBaselines;
use burnish::algorithm::aggregate::{self, AllOf, grouped_token_weights};
use burnish::algorithm::filter_groups::keep_groups;
use burnish::algorithm::reward_shaping::{LengthPenalty, ResponseSize, subtract_teacher_kl};
use serde_json::{Value, json};

use super::case::{PeerCase, number};
use super::entry::{Entry, Precision, never};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        algorithm: "skyrl_loss_reduction",
        precision: Precision::Column,
        run: skyrl_loss_reduction,
        left_out: &[],
        deviates: |case| {
            let legacy = case.option_word("loss_reduction") == "token_mean_legacy";
            legacy.then_some("SkyRL's legacy mean depends on how the mini-batch is cut")
        },
    },
    Entry { algorithm: "zero_variance_filter", precision: Precision::Double, run: zero_variance, left_out: &[], deviates: never },
    Entry {
        algorithm: "length_penalty",
        precision: Precision::Double,
        run: length_penalty,
        left_out: &[],
        deviates: |case| {
            let rewards_length = case.option_word("rewards") == "negative" && !case.option("length_penalty").is_null();
            rewards_length.then_some("prime-rl rewards length in a group whose mean score is negative")
        },
    },
    Entry { algorithm: "rae", precision: Precision::Double, run: rae, left_out: &[], deviates: never },
    Entry {
        algorithm: "opd_in_advantages",
        precision: Precision::Column,
        run: opd_in_advantages,
        left_out: &[("opd_reverse_kl", "a value per token; the trainer reports the mean")],
        deviates: never,
    },
];

/// SkyRL scales the advantages; our weights scale the loss, which is linear in them.
fn skyrl_loss_reduction(case: &PeerCase) -> Value {
    let mode = match case.option_word("loss_reduction") {
        "sequence_mean" => "seq-mean-token-mean",
        "seq_mean_token_sum_norm" => "seq-mean-token-sum-norm",
        "prompt_mean" => "prompt-mean",
        _ => "token-mean",
    };
    let (mode, groups) = (aggregate::find(mode).unwrap(), case.groups());
    let all = AllOf { sequences: groups.len(), prompts: groups.iter().max().unwrap() + 1, groups: &groups };
    let width = case.option_number("max_seq_len") as usize;
    let weights = grouped_token_weights(mode, &case.offsets, &case.mask, all, None, width);
    let scaled: Vec<f32> = case.column("advantages").iter().zip(weights).map(|(a, w)| a * w).collect();
    json!({ "scaled_advantages": case.ragged(&scaled) })
}

/// A response that is not live has no score here.
fn zero_variance(case: &PeerCase) -> Value {
    let live = case.numbers("live");
    let values: Vec<Option<f64>> =
        case.numbers("rewards").iter().zip(live).map(|(&r, live)| (live != 0.0).then_some(r)).collect();
    json!({ "kept": keep_groups(&case.groups(), &values, None, case.option_number("tol")) })
}

/// The advantage is the changed score less the mean of its group.
fn length_penalty(case: &PeerCase) -> Value {
    let rows = case.json["in"]["rows"].as_array().unwrap();
    let count = |row: &Value, name: &str| row[name].as_u64().unwrap() as usize;
    let groups: Vec<usize> = rows.iter().map(|row| count(row, "uid")).collect();
    let mut scores: Vec<Option<f64>> = rows.iter().map(|row| Some(number(&row["reward"]))).collect();
    let size = |row: &Value| ResponseSize {
        output_tokens: count(row, "output_tokens"),
        input_tokens: count(row, "input_tokens"),
        turns: count(row, "turns"),
    };
    if let Some(weights) = case.option("length_penalty").as_object() {
        let weight = |name: &str| number(&weights[name]);
        let penalty = LengthPenalty {
            output_tokens: weight("num_output_tokens_weight"),
            input_tokens: weight("num_input_tokens_weight"),
            turns: weight("num_turns_weight"),
        };
        penalty.apply(&mut scores, &groups, &rows.iter().map(size).collect::<Vec<_>>());
    }
    let scores: Vec<f64> = scores.into_iter().flatten().collect();
    let mean = |group: usize| {
        let own: Vec<f64> = (0..scores.len()).filter(|&i| groups[i] == group).map(|i| scores[i]).collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    let advantages: Vec<f64> = scores.iter().zip(&groups).map(|(score, &group)| score - mean(group)).collect();
    json!({ "advantage_of_response": advantages })
}

fn opd_in_advantages(case: &PeerCase) -> Value {
    let [old, teacher, mut advantages] = ["old_log_probs", "teacher_log_probs", "advantages"].map(|name| case.column(name));
    let coef = case.option_number("opd_kl_coef");
    let mean = subtract_teacher_kl(&case.mask, &old, &teacher, coef, &mut advantages);
    let of_trained = (0..case.mask.len()).filter(|&t| case.mask[t] != 0.0);
    let theirs: Vec<f64> = case.json["out"]["opd_reverse_kl"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row.as_array().unwrap())
        .map(number)
        .collect();
    let (sum, count) = of_trained.fold((0.0, 0.0), |(sum, count), t| (sum + theirs[t], count + 1.0));
    assert!((mean - sum / count).abs() < 1e-6, "{}", case.id());
    json!({ "advantages": case.ragged(&advantages) })
}

/// A trace with an error has no score here.
fn rae(case: &PeerCase) -> Value {
    let mut baselines: RoleBaselines = serde_json::from_value(case.json["in"]["baselines"].clone()).unwrap();
    let traces = case.json["in"]["traces"].as_array().unwrap();
    let roles: Vec<&str> = traces.iter().map(|trace| trace["role"].as_str().unwrap()).collect();
    let scores: Vec<Option<f64>> =
        traces.iter().map(|trace| (trace["error"] != true).then(|| number(&trace["reward"]))).collect();
    let before = baselines.follow(case.option_number("decay"), &roles, &scores);
    let advantages: Vec<Option<f64>> = scores.iter().zip(before).map(|(score, baseline)| Some((*score)? - baseline)).collect();
    json!({ "advantage_of_trace": advantages, "baselines": baselines })
}
