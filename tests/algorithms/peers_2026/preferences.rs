//! TRL's TPO.

use burnish::algorithm::options::{OptionValue, Options};
use burnish::algorithm::preference::{self, Answer, AnswerGrads, PairCounts, PairObjective};
use serde_json::{Value, json};

use super::case::{PeerCase, number};
use super::entry::{Entry, Precision, never};

pub(super) const ENTRIES: &[Entry] =
    &[Entry { algorithm: "tpo", precision: Precision::Double, run: tpo, left_out: &[], deviates: never }];

/// The responses of a case, in f64.
fn answers(case: &PeerCase, name: &str) -> Vec<Answer> {
    // Gold answers with a weight of 0 are not read.
    let rows = case.json["in"]["log_probs"][name].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let answer = |row: &Value| {
        let log_probs: Vec<f64> = row.as_array().unwrap().iter().map(number).collect();
        let sum = log_probs.iter().sum();
        Answer { log_prob: sum, plain: sum, tokens: log_probs.len(), ..Answer::default() }
    };
    rows.iter().map(answer).collect()
}

/// Every token of a response has the same gradient.
fn by_token(answers: &[Answer], grads: &[AnswerGrads]) -> Value {
    let response = |(answer, grads): (&Answer, &AnswerGrads)| json!(vec![grads.log_prob + grads.plain; answer.tokens]);
    answers.iter().zip(grads).map(response).collect()
}

fn tpo(case: &PeerCase) -> Value {
    let name = match case.option_word("loss_type") {
        "sigmoid" => "tpo",
        "hinge" => "tpo_hinge",
        "ipo" => "tpo_ipo",
        other => other,
    };
    let loss = preference::find(name).unwrap();
    let value = |key: &str| Ok::<_, String>(OptionValue::Number(case.option_number(key.strip_prefix("algorithm.").unwrap())));
    let options = Options::read(loss.reads, value).unwrap();
    let objective = PairObjective { losses: vec![(loss, 1.0, options)], use_weighting: false, nll_loss_coef: 0.0 };
    let [chosen, rejected, gold] = ["chosen", "rejected", "reference"].map(|name| answers(case, name));
    let pairs: Vec<[Answer; 2]> = chosen.iter().zip(&rejected).map(|(chosen, rejected)| [*chosen, *rejected]).collect();
    let gold_tokens = gold.iter().map(|answer| answer.tokens).sum();
    let counts = PairCounts { gold_tokens, ..PairCounts::count(&pairs) };
    let of_pairs = objective.evaluate(&pairs, &counts);
    let (of_gold, gold_grads) = objective.evaluate_gold(&gold, &counts);
    let side = |side: usize| of_pairs.grads.iter().map(|grads| grads[side]).collect::<Vec<_>>();
    let known = |name: &str| case.json["out"]["metrics"].get(name).is_some();
    let metrics: serde_json::Map<String, Value> = objective
        .metrics(&pairs)
        .into_iter()
        .filter(|(name, _)| known(name))
        // TRL counts in float32.
        .map(|(name, value)| (name, if name == "rewards/accuracies" { f64::from(value as f32) } else { value }))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let mut grad = json!({"chosen": by_token(&chosen, &side(0)), "rejected": by_token(&rejected, &side(1))});
    if !gold.is_empty() {
        grad["reference"] = by_token(&gold, &gold_grads);
    }
    json!({"loss": of_pairs.loss + of_gold, "grad": grad, "metrics": metrics})
}
