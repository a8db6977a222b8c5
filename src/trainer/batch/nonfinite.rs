//! Handles NaN and infinite values of a batch: names them, writes them to a file with their origin, then refuses or skips them
//! (`trainer.on_nonfinite`).

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Batch;
use super::columns::Column;
use crate::job::Context;
use crate::job::nonfinite::report;
use burnish_config::schema::OnNonfinite;
use burnish_optim::Update;
use burnish_reward::ResponseScore;
use burnish_tracking::Metrics;
use burnish_util::excerpt::excerpt;
use burnish_util::json_number;

/// A value that is not finite.
#[derive(Serialize, Deserialize)]
pub(crate) struct NonfiniteValue {
    /// Name of the value, such as "actor: the gradient of `model.norm.weight`".
    pub what: String,
    /// Its trajectory, if it belongs to one.
    pub trajectory: Option<usize>,
}

impl NonfiniteValue {
    /// Returns the error of an update whose gradient was not finite. `learner`: the name of the trained model.
    pub(crate) fn of_gradient(learner: &str, update: &Update) -> Option<Self> {
        let name = update.nonfinite.as_ref()?;
        Some(Self { what: format!("{learner}: the gradient of `{name}`"), trajectory: None })
    }
}

/// Returns the index of the first NaN or infinite value.
fn first_nonfinite(values: &[f32]) -> Option<usize> {
    values.iter().position(|x| !x.is_finite())
}

/// Returns the first sequence of a ragged column with a nonfinite value.
pub(crate) fn nonfinite_sequence(column: &[f32], offsets: &[usize]) -> Option<usize> {
    let at = first_nonfinite(column)?;
    Some(offsets.partition_point(|&start| start <= at) - 1)
}

/// Handles a nonfinite value in `trajectories`, which are written to the file.
///
/// # Errors
/// The errors of [`report`].
pub(crate) fn on_nonfinite(nonfinite: &NonfiniteValue, batch: &Batch, trajectories: &[usize], at: &Context) -> Result<()> {
    let of = nonfinite.trajectory.map_or(String::new(), |i| {
        let prompt = batch.prompt(i);
        format!(" for the response {} to row {} {}", excerpt(&batch.texts[i]), prompt.index, excerpt(&prompt.text))
    });
    let rows: Vec<Value> = trajectories.iter().map(|&i| row(batch, i)).collect();
    at.ranks.first(|| report(at.settings.on_nonfinite, at.settings.dir(), at.step, &format!("{}{of}", nonfinite.what), &rows))
}

/// Checks scores and the rewards in them; a skipped score becomes `None`.
///
/// # Errors
/// The errors of [`report`].
pub(crate) fn check_scores(batch: &mut Batch, at: &Context) -> Result<()> {
    let wrong = |score: &ResponseScore| score.score.is_some_and(|score| !score.is_finite());
    let faulty: Vec<usize> = (0..batch.len()).filter(|&i| wrong(&batch.scores[i])).collect();
    if let Some(&first) = faulty.first() {
        let score = &batch.scores[first];
        let parts = score.components.iter().filter_map(|c| Some(format!("{} {}", c.name, c.reward?)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        let what = format!("reward: the score {} ({parts})", score.score.unwrap_or(f32::NAN));
        on_nonfinite(&NonfiniteValue { what, trajectory: Some(first) }, batch, &faulty, at)?;
    }
    if at.settings.on_nonfinite == OnNonfinite::Skip {
        for score in &mut batch.scores {
            score.components.iter_mut().for_each(|c| c.reward = c.reward.filter(|reward| reward.is_finite()));
            let before = score.extra("nonfinite").unwrap_or(0.0);
            score.report("nonfinite", before.max(f64::from(u8::from(wrong(score)))));
            score.score = score.score.filter(|score| score.is_finite());
        }
    }
    Ok(())
}

/// Checks every column written so far; a skipped trajectory is neither trained on nor counted.
pub(crate) fn check_columns(batch: &mut Batch, at: &Context, metrics: &mut Metrics) -> Result<()> {
    let wrong = |i: usize| batch.columns_of(i).find(|(_, values)| first_nonfinite(values).is_some());
    let faulty: Vec<(usize, Column)> = (0..batch.len()).filter_map(|i| Some((i, wrong(i)?.0))).collect();
    let trajectories: Vec<usize> = faulty.iter().map(|(i, _)| *i).collect();
    if let Some((i, column)) = faulty.first() {
        on_nonfinite(&NonfiniteValue { what: format!("`{}`", column.name()), trajectory: Some(*i) }, batch, &trajectories, at)?;
    }
    for &i in &trajectories {
        batch.leave_out(i);
    }
    if at.settings.on_nonfinite == OnNonfinite::Skip {
        let name = "training/nonfinite_responses";
        metrics.set(name, metrics.get(name).unwrap_or(0.0) + trajectories.len() as f64);
    }
    Ok(())
}

/// Returns a trajectory with all its values, as JSON.
fn row(batch: &Batch, i: usize) -> Value {
    let prompt = batch.prompt(i);
    let mut row = json!({
        "row": prompt.index,
        "data_source": prompt.data_source,
        "prompt": prompt.text,
        "prompt_ids": batch.prompt_ids(i),
        "response": batch.texts[i],
        "response_ids": batch.responses[i].ids,
        "ground_truth": prompt.ground_truth,
        "score": json_number::to_value(batch.scores[i].score.map(f64::from)),
    });
    if let Some(episode) = &batch.episodes[i] {
        row["messages"] = episode.messages.clone().into();
    }
    for (column, values) in batch.columns_of(i) {
        row[column.name()] = numbers(values);
    }
    row
}

/// Converts floats to JSON, with words for those that JSON lacks.
pub(crate) fn numbers(values: &[f32]) -> Value {
    json_number::to_value(values.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::two_responses;

    #[test]
    fn a_fault_is_written_with_its_numbers_and_refused_or_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut batch = two_responses();
        batch.set(Column::Advantages, vec![0.5, f32::NAN, f32::NEG_INFINITY, 1.0]);
        let rows = [row(&batch, 0), row(&batch, 1)];
        report(OnNonfinite::Skip, dir.path(), 7, "`advantages`", &rows).unwrap();
        let error = report(OnNonfinite::Error, dir.path(), 7, "`advantages`", &rows).unwrap_err().to_string();
        assert!(error.contains("step 7: `advantages` is not finite") && error.contains("step_7-2.jsonl"), "{error}");
        let text = std::fs::read_to_string(dir.path().join("nonfinite/step_7.jsonl")).unwrap();
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read[0]["advantages"], json!([0.5, "NaN"]));
        assert_eq!((&read[1]["advantages"], &read[1]["response_ids"]), (&json!(["-Infinity", 1.0]), &json!([5, 2])));
    }
}
