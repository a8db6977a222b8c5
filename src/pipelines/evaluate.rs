//! Scores of the responses in a file: `trainer eval`. verl's metric: the mean over a row's responses, then over the rows of a
//! data source.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::config::schema::EvalConfig;
use crate::data::rows::{Row, read_rows};
use crate::reward::{self, ScoreInput};

/// `test_score/DATA_SOURCE` of every data source, in the order of the rows.
///
/// # Errors
/// A row that cannot be scored: missing columns, a data source without a scorer, no responses. Its file and place are named.
pub fn evaluate(config: &EvalConfig) -> Result<Map<String, Value>> {
    let data = &config.data;
    let files: Vec<PathBuf> = data.path.iter().map(|file| file.as_path().to_owned()).collect();
    let required = [&data.response_key, &data.data_source_key, &data.reward_model_key].map(String::as_str);
    let rows = read_rows(&files, &required, &["extra_info"]).context("data.path")?;
    if rows.is_empty() {
        bail!("data.path: no rows to score");
    }
    let score = |row: &Row| score_row(row, config).with_context(|| row.place());
    // Gathered before the first error is looked for, so that the same file always gives the same error.
    let scores: Vec<Result<(String, f64)>> = rows.par_iter().map(score).collect();
    let mut sources: Vec<(String, Vec<f64>)> = Vec::new();
    for (source, score) in scores.into_iter().collect::<Result<Vec<_>>>()? {
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, scores)) => scores.push(score),
            None => sources.push((source, vec![score])),
        }
    }
    Ok(sources.into_iter().map(|(source, scores)| (format!("test_score/{source}"), json!(mean(&scores)))).collect())
}

/// The data source of a row, and the mean score of its responses.
fn score_row(row: &Row, config: &EvalConfig) -> Result<(String, f64)> {
    let data = &config.data;
    let source = row.column(&data.data_source_key)?;
    let source = source.as_str().with_context(|| format!("column \"{}\" must be text, not {source}", data.data_source_key))?;
    let scorer = reward::find(source)?;
    let truth = row.column(&data.reward_model_key)?.get("ground_truth").filter(|truth| !truth.is_null());
    let ground_truth = truth.with_context(|| format!("column \"{}\" has no ground_truth", data.reward_model_key))?;
    let none = json!({});
    let extra_info = row.values.get("extra_info").filter(|extra| !extra.is_null()).unwrap_or(&none);

    let key = &data.response_key;
    let responses = row.column(key)?;
    let responses = responses.as_array().with_context(|| format!("column \"{key}\" must be a list of texts, not {responses}"))?;
    if responses.is_empty() {
        bail!("column \"{key}\" has no responses");
    }
    let score = |(i, response): (usize, &Value)| {
        let solution = response.as_str().with_context(|| format!("response {i} must be text, not {response}"))?;
        let score = (scorer.run)(&ScoreInput { data_source: source, solution, ground_truth, extra_info, ..Default::default() })
            .with_context(|| format!("scoring response {i} ({solution:?})"))?
            .score
            .with_context(|| format!("the scorer abstained from response {i} ({solution:?})"))?;
        if !score.is_finite() {
            bail!("the score of response {i} is {score}");
        }
        Ok(f64::from(score))
    };
    let scores = responses.iter().enumerate().map(score).collect::<Result<Vec<_>>>()?;
    Ok((source.to_owned(), mean(&scores)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
