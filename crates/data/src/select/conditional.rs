//! Conditional fine-tuning: the score of a response stands in its prompt, so that a high one can be asked for later. Agrees with
//! OpenRLHF's `conditional_sft_processor`.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::entry::{SelectOptions, SelectedRows};
use super::row::object;
use super::scored::ScoredResponses;

/// Makes a row of every response, its prompt put into the template.
///
/// # Errors
/// If the template lacks `{input}` or `{reward}`, scores that are all equal are to be normalised, or a conversation has no text
/// to end with.
pub fn conditional(answers: &ScoredResponses, options: &SelectOptions) -> Result<SelectedRows> {
    let template = &options.reward_template;
    for place in ["{input}", "{reward}"] {
        ensure!(template.contains(place), "--reward-template {template:?}: it has no {place}");
    }
    let mut scores: Vec<f64> = answers.answers.iter().map(|answer| answer.score).collect();
    if options.normalize_reward {
        normalize(&mut scores)?;
    }
    let rows = answers.answers.iter().zip(scores).map(|(answer, score)| {
        let fill = |input: &str| template.replace("{reward}", &format!("{score:.2}")).replace("{input}", input);
        let mut input = (*answer.prompt).clone();
        let text = match &mut input {
            Value::Array(turns) => turns.last_mut().and_then(|turn| turn.get_mut("content")),
            text => Some(text),
        };
        let text = text.filter(|text| text.is_string()).context("a conversation must end with a message of text")?;
        *text = fill(text.as_str().unwrap_or_default()).into();
        Ok(object([("input", input), ("output", answer.response.as_str().into()), ("reward", json!(score))]))
    });
    Ok(SelectedRows { rows: rows.collect::<Result<_>>()?, left_out: vec![] })
}

/// Subtracts the mean and divides by the standard deviation, that of a sample (n − 1).
fn normalize(scores: &mut [f64]) -> Result<()> {
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (n - 1.0);
    ensure!(variance > 0.0, "--normalize-reward: the scores are all the same, and have no spread to divide by");
    scores.iter_mut().for_each(|score| *score = (*score - mean) / variance.sqrt());
    Ok(())
}
