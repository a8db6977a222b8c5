//! Advantage estimators.

use burnish::algorithm::advantage::{self, AdvantageInput};
use serde_json::{Value, json};

use super::case::PeerCase;
use super::entry::{Entry, Precision, never};
use crate::cases::built_in;

pub(super) const ENTRIES: &[Entry] = &[
    Entry { algorithm: "flash_reinforce", precision: Precision::Column, run: flash_reinforce, left_out: &[], deviates: never },
    Entry { algorithm: "maxrl", precision: Precision::Column, run: maxrl_of_skyrl, left_out: &[], deviates: skyrl_deviates },
    Entry { algorithm: "max_rl", precision: Precision::Column, run: max_rl, left_out: &[], deviates: never },
];

fn flash_reinforce(case: &PeerCase) -> Value {
    let scores = case.on_last(&case.numbers("rewards"));
    let beta = case.option_number("kl_coef") as f32;
    let kl = case.column("kl");
    let rewards: Vec<f32> = (0..kl.len()).map(|t| scores[t] - beta * kl[t] * case.mask[t]).collect();
    let range: Vec<f64> = case.option("clip_range").as_array().unwrap().iter().map(|bound| bound.as_f64().unwrap()).collect();
    let estimator = advantage::find("flash_reinforce").unwrap();
    let output = (estimator.run)(&AdvantageInput {
        offsets: &case.offsets,
        rewards: &rewards,
        scores: &scores,
        mask: &case.mask,
        group: &vec![0; case.responses()],
        options: built_in(estimator.reads).with("baselined_clip_range", [range[0], range[1]]),
        ..Default::default()
    });
    // The return of the first trained token is the sum of all rewards.
    let first = |pair: &[usize]| (pair[0]..pair[1]).find(|&t| case.mask[t] != 0.0).map(|t| f64::from(output.returns[t]));
    let sums: Vec<Option<f64>> = case.offsets.windows(2).map(first).collect();
    json!({ "advantages": case.ragged(&output.advantages), "sum_of_rewards": sums })
}

/// Returns the advantages of `maxrl`.
fn maxrl(case: &PeerCase) -> Vec<f32> {
    let scores = case.on_last(&case.numbers("rewards"));
    let estimator = advantage::find("maxrl").unwrap();
    let output = (estimator.run)(&AdvantageInput {
        offsets: &case.offsets,
        rewards: &scores,
        scores: &scores,
        mask: &case.mask,
        group: &case.groups(),
        ..Default::default()
    });
    output.advantages
}

fn max_rl(case: &PeerCase) -> Value {
    let advantages = maxrl(case);
    json!({ "advantage_of_response": advantages.iter().map(|&a| f64::from(a)).collect::<Vec<f64>>() })
}

/// SkyRL divides by the mean plus an epsilon.
fn maxrl_of_skyrl(case: &PeerCase) -> Value {
    let (groups, scores, epsilon) = (case.groups(), case.numbers("rewards"), case.option_number("epsilon"));
    let mean = |group: usize| {
        let own: Vec<f64> = (0..scores.len()).filter(|&i| groups[i] == group).map(|i| scores[i]).collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    let factors: Vec<f64> = groups.iter().map(|&group| mean(group) / (mean(group) + epsilon)).collect();
    let advantages: Vec<f32> = maxrl(case).iter().zip(case.spread(&factors)).map(|(a, factor)| a * factor).collect();
    json!({ "advantages": case.ragged(&advantages) })
}

fn skyrl_deviates(case: &PeerCase) -> Option<&'static str> {
    let groups = case.groups();
    let is_alone = (0..groups.len()).any(|i| groups.iter().filter(|group| **group == groups[i]).count() == 1);
    match case.option_word("rewards") {
        "negative" => Some("SkyRL reverses the sign of a group whose mean is negative"),
        _ => is_alone.then_some("SkyRL keeps the score of a response alone in its group"),
    }
}
