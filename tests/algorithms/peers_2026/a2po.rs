//! A*-PO: values of prompts, and the regression on them.

use burnish::algorithm::advantage::PromptValues;
use burnish::algorithm::loss::PolicyObjective;
use burnish::algorithm::policy_loss::{self, MiniBatch};
use serde_json::{Value, json};

use super::case::{PeerCase, number};
use super::entry::{Entry, Precision, never};
use crate::cases::loss_options;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        algorithm: "a2po_value",
        precision: Precision::Column,
        run: value,
        left_out: &[],
        deviates: |case| {
            let cancel = |scores: &Vec<f64>| scores.iter().sum::<f64>() == 0.0 && scores.iter().any(|score| *score > 0.0);
            let cancel = rewards(case).iter().any(cancel) && filters(case);
            cancel.then_some("TRL leaves out prompts whose scores cancel out")
        },
    },
    Entry { algorithm: "a2po_loss", precision: Precision::Column, run: loss, left_out: &[], deviates: never },
];

fn filters(case: &PeerCase) -> bool {
    case.option("filter_all_incorrect").as_bool().unwrap()
}

fn rewards(case: &PeerCase) -> Vec<Vec<f64>> {
    let prompts = case.json["in"]["rewards_of_reference_samples"].as_array().unwrap();
    prompts.iter().map(|scores| scores.as_array().unwrap().iter().map(number).collect()).collect()
}

fn value(case: &PeerCase) -> Value {
    let mut values = PromptValues::default();
    let prompts = rewards(case);
    prompts.iter().enumerate().for_each(|(row, scores)| values.add(row, scores, case.option_number("beta1")));
    let kept: Vec<usize> = (0..prompts.len()).filter(|&row| !filters(case) || values.is_solved(row)).collect();
    let of = |row: usize| values.of(row).unwrap();
    json!({"v_star": (0..prompts.len()).map(of).collect::<Vec<f64>>(), "kept_prompts": kept})
}

fn loss(case: &PeerCase) -> Value {
    let policy_loss = policy_loss::find("a2po").unwrap();
    let options = loss_options(policy_loss).with("a2po_beta", case.option_number("beta2"));
    let objective = PolicyObjective {
        policy_loss,
        options,
        entropy_coeff: 0.0,
        kl_loss: None,
        top_entropy_quantile: 1.0,
        off_policy_mask: None,
    };
    let values = case.numbers("v_star");
    let advantages: Vec<f64> = case.numbers("rewards").iter().zip(values).map(|(reward, value)| reward - value).collect();
    let (log_prob, reference) = (case.column("log_probs"), case.column("ref_log_probs"));
    let prepared = objective.prepare(
        &MiniBatch {
            offsets: &case.offsets,
            mask: &case.mask,
            log_prob: &log_prob,
            entropy: &vec![0.0; case.mask.len()],
            old_log_prob: &log_prob,
            advantages: &case.spread(&advantages),
            ref_log_prob: Some(&reference),
            groups: &(0..case.responses()).collect::<Vec<_>>(),
            options: &objective.options,
        },
        &mut || 0.5,
    );
    let metric = |name: &str| prepared.metrics.iter().find(|(known, _)| known == name).unwrap().1;
    let mean = advantages.iter().sum::<f64>() / advantages.len() as f64;
    json!({
        "loss": metric("actor/pg_loss"),
        "grad": case.ragged(&prepared.factor.unwrap()),
        "metrics": {"implicit_reward": metric("actor/implicit_reward"), "advantage": mean},
    })
}
