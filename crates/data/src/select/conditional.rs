//! Conditional fine-tuning: puts the score of a response into its prompt, so a high score can be requested later. Agrees with
//! OpenRLHF's `conditional_sft_processor`.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::entry::{SelectOptions, SelectedRows};
use super::row::object;
use super::scored::ScoredResponses;

/// Makes a row of every response, with its prompt in the template.
///
/// # Errors
/// If the template lacks `{input}` or `{reward}`, all scores are equal and cannot be normalised, or a prompt does not end with a
/// text message.
pub(crate) fn conditional(responses: &ScoredResponses, options: &SelectOptions) -> Result<SelectedRows> {
    let template = &options.reward_template;
    for place in ["{input}", "{reward}"] {
        ensure!(template.contains(place), "--reward-template {template:?} has no {place}");
    }
    let mut scores: Vec<f64> = responses.responses.iter().map(|response| response.score).collect();
    if options.normalize_reward {
        normalize(&mut scores)?;
    }
    let rows = responses.responses.iter().zip(scores).map(|(response, score)| {
        let fill = |input: &str| template.replace("{reward}", &format!("{score:.2}")).replace("{input}", input);
        let mut input = (*response.prompt).clone();
        let text = match &mut input {
            Value::Array(turns) => turns.last_mut().and_then(|turn| turn.get_mut("content")),
            text => Some(text),
        };
        let text = text.filter(|text| text.is_string()).context("a conversation must end with a message of text")?;
        *text = fill(text.as_str().unwrap_or_default()).into();
        Ok(object([("input", input), ("output", response.response.as_str().into()), ("reward", json!(score))]))
    });
    Ok(SelectedRows { rows: rows.collect::<Result<_>>()?, left_out: vec![] })
}

/// Subtracts the mean and divides by the sample standard deviation (n − 1).
fn normalize(scores: &mut [f64]) -> Result<()> {
    let n = scores.len() as f64;
    let mean = scores.iter().sum::<f64>() / n;
    let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / (n - 1.0);
    ensure!(variance > 0.0, "--normalize-reward: all scores are equal, so their standard deviation is 0");
    scores.iter_mut().for_each(|score| *score = (*score - mean) / variance.sqrt());
    Ok(())
}
