//! Numbers that are NaN or infinite: named, written to a file with what they came from, and refused or left out
//! (`trainer.on_nonfinite`).

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::Trainer;
use super::batch::{Batch, extra};
use crate::config::schema::OnNonfinite;
use crate::optim::Update;
use crate::tracking::Metrics;
use crate::util::fs::write_atomic;
use crate::util::nonfinite;

/// A number that is not finite.
pub struct Fault {
    /// Which, such as "actor: the gradient of `model.norm.weight`".
    pub what: String,
    /// The trajectory it belongs to, where it belongs to one.
    pub trajectory: Option<usize>,
}

impl Fault {
    /// That of an update whose gradient was not finite. `learner`: the name of what is trained.
    pub fn of_gradient(learner: &str, update: &Update) -> Option<Self> {
        let name = update.nonfinite.as_ref()?;
        Some(Self { what: format!("{learner}: the gradient of `{name}`"), trajectory: None })
    }
}

/// Where the first number that is NaN or infinite stands.
fn first_nonfinite(values: &[f32]) -> Option<usize> {
    values.iter().position(|x| !x.is_finite())
}

/// The first sequence of a ragged column with such a number.
pub fn faulty_sequence(column: &[f32], offsets: &[usize]) -> Option<usize> {
    let at = first_nonfinite(column)?;
    Some(offsets.partition_point(|&start| start <= at) - 1)
}

/// Writes `rows`, what a mini-batch was made of, to `<dir>/nonfinite/step_<step>.jsonl`, or where that is there already to
/// `step_<step>-2.jsonl` and so on, and does as `policy` says.
///
/// # Errors
/// With [`OnNonfinite::Error`] always; else where the file cannot be written.
pub fn report(policy: OnNonfinite, dir: &Path, step: u64, what: &str, rows: &[Value]) -> Result<()> {
    let name = |n: usize| if n == 1 { format!("step_{step}.jsonl") } else { format!("step_{step}-{n}.jsonl") };
    let mut paths = (1..).map(|n| dir.join("nonfinite").join(name(n)));
    let path = paths.find(|path| !path.exists()).unwrap_or_default();
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    write_atomic(&path, lines.as_bytes())?;
    let message = format!("step {step}: {what} is not finite; what it was computed from is in {}", path.display());
    match policy {
        OnNonfinite::Error => bail!("{message}; trainer.on_nonfinite=skip would leave it out"),
        OnNonfinite::Skip => tracing::warn!("{message}; it is left out"),
    }
    Ok(())
}

impl Trainer {
    /// Deals with a fault in some trajectories of the batch, which are those written to the file.
    ///
    /// # Errors
    /// As [`report`].
    pub(super) fn on_nonfinite(&self, fault: &Fault, batch: &Batch, trajectories: &[usize]) -> Result<()> {
        let trainer = &self.config.trainer;
        let of = fault.trajectory.map_or(String::new(), |i| {
            let (prompt, ids) = (batch.prompt(i), &batch.responses[i].ids);
            format!(" for the response {:?} {ids:?} to row {} {:?} {:?}", batch.texts[i], prompt.index, prompt.text, prompt.ids)
        });
        let rows: Vec<Value> = trajectories.iter().map(|&i| row(batch, i)).collect();
        let dir = trainer.default_local_dir.as_path();
        report(trainer.on_nonfinite, dir, self.step, &format!("{}{of}", fault.what), &rows)
    }

    /// Scores, and the rewards they are made of: one that is left out is none.
    pub(super) fn guard_scores(&self, batch: &mut Batch, scores: &mut [Option<f64>]) -> Result<()> {
        // As the f32 that training takes it for.
        let wrong = |score: &Option<f64>| score.is_some_and(|score| !(score as f32).is_finite());
        let faulty: Vec<usize> = (0..scores.len()).filter(|&i| wrong(&scores[i])).collect();
        if let Some(&first) = faulty.first() {
            let parts = batch.components.iter().filter_map(|c| Some(format!("{} {}", c.name, c.values[first]?)));
            let parts = parts.collect::<Vec<_>>().join(", ");
            let what = format!("reward: the score {} ({parts})", scores[first].unwrap_or(f64::NAN));
            self.on_nonfinite(&Fault { what, trajectory: Some(first) }, batch, &faulty)?;
        }
        if self.config.trainer.on_nonfinite == OnNonfinite::Skip {
            for component in &mut batch.components {
                component.values.iter_mut().for_each(|value| *value = value.filter(|value| value.is_finite()));
            }
            let flags = extra(&mut batch.extras, "nonfinite", scores.len());
            for (flag, score) in flags.iter_mut().zip(scores) {
                *flag = Some(f64::from(u8::from(wrong(score))));
                *score = score.filter(|_| !wrong(score));
            }
        }
        Ok(())
    }

    /// Every column there is so far: a trajectory that is left out is not trained on and counts in nothing.
    pub(super) fn guard_columns(&self, batch: &mut Batch, metrics: &mut Metrics) -> Result<()> {
        let mut faulty: Vec<(usize, &str)> = Vec::new();
        for i in 0..batch.len() {
            let tokens = batch.tokens(i);
            let mut columns = columns(batch).into_iter();
            let wrong = columns.find(|(_, column)| first_nonfinite(&column[tokens.clone()]).is_some());
            faulty.extend(wrong.map(|(name, _)| (i, name)));
        }
        let trajectories: Vec<usize> = faulty.iter().map(|(i, _)| *i).collect();
        if let Some((i, name)) = faulty.first() {
            self.on_nonfinite(&Fault { what: format!("`{name}`"), trajectory: Some(*i) }, batch, &trajectories)?;
        }
        for &i in &trajectories {
            let tokens = batch.tokens(i);
            batch.scored[i] = false;
            batch.columns_mut().for_each(|column| column[tokens.clone()].fill(0.0));
        }
        if self.config.trainer.on_nonfinite == OnNonfinite::Skip {
            let name = "training/nonfinite_responses";
            metrics.set(name, metrics.get(name).unwrap_or(0.0) + trajectories.len() as f64);
        }
        Ok(())
    }
}

/// The columns of a batch that are there, with their names.
fn columns(batch: &Batch) -> Vec<(&'static str, &[f32])> {
    let columns = [
        ("rollout_log_prob", Some(&batch.rollout_log_prob)),
        ("sampled_log_prob", Some(&batch.sampled_log_prob)),
        ("old_log_prob", batch.old_log_prob.as_ref()),
        ("ref_log_prob", batch.ref_log_prob.as_ref()),
        ("values", batch.values.as_ref()),
        ("full_kl", batch.full_kl.as_ref()),
        ("sum_pi_squared", batch.sum_pi_squared.as_ref()),
        ("rollout_is_weights", batch.rollout_is_weights.as_ref()),
        ("scores", Some(&batch.scores)),
        ("rewards", Some(&batch.rewards)),
        ("advantages", Some(&batch.advantages)),
        ("returns", Some(&batch.returns)),
    ];
    let there = columns.into_iter().filter_map(|(name, column)| Some((name, column?.as_slice())));
    there.filter(|(_, column)| !column.is_empty()).collect()
}

/// A trajectory with all its numbers, as JSON.
fn row(batch: &Batch, i: usize) -> Value {
    let prompt = batch.prompt(i);
    let mut row = json!({
        "row": prompt.index,
        "data_source": prompt.data_source,
        "prompt": prompt.text,
        "prompt_ids": prompt.ids,
        "response": batch.texts[i],
        "response_ids": batch.responses[i].ids,
        "ground_truth": prompt.ground_truth,
        "scored": batch.scored[i],
        "mask": numbers(&batch.mask[batch.tokens(i)]),
    });
    for (name, column) in columns(batch) {
        row[name] = numbers(&column[batch.tokens(i)]);
    }
    row
}

/// Numbers as JSON, with those it lacks as text.
pub fn numbers(values: &[f32]) -> Value {
    nonfinite::json(values.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::batch::tests::two_responses;
    use super::*;

    #[test]
    fn a_fault_is_written_with_its_numbers_and_refused_or_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let mut batch = two_responses();
        batch.advantages = vec![0.5, f32::NAN, f32::NEG_INFINITY, 1.0];
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
