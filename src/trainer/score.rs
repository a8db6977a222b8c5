//! Phase `reward`: one score per trajectory, by the scorer of its data source. A score that fails is an error, never a 0.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::Trainer;
use super::batch::Batch;
use crate::reward::{self, ScoreInput};
use crate::util::fs::write_atomic;

impl Trainer {
    /// Scores every trajectory; the score stands at the last token of the response, as in verl's naive reward manager.
    pub(super) fn score(&self, batch: &mut Batch) -> Result<()> {
        let score_one = |i: usize| {
            let prompt = batch.prompt(i);
            let input = ScoreInput {
                data_source: &prompt.data_source,
                solution: &batch.texts[i],
                ground_truth: &prompt.ground_truth,
                extra_info: &prompt.extra_info,
            };
            let score = (reward::find(&prompt.data_source)?.run)(&input);
            score.with_context(|| format!("scoring the response to row {} ({:?})", prompt.index, batch.texts[i]))
        };
        let scores = (0..batch.len()).into_par_iter().map(score_one).collect::<Result<Vec<_>>>()?;
        let mut extras: Vec<(String, Vec<Option<f64>>)> = Vec::new();
        for (i, score) in scores.into_iter().enumerate() {
            if !score.score.is_finite() {
                bail!("the score of the response to row {} is {}", batch.prompt(i).index, score.score);
            }
            // A response has at least one token.
            let last = batch.offsets[i + 1] - 1;
            batch.scores[last] = score.score;
            for (name, value) in score.extras {
                let at = extras.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                    extras.push((name, vec![None; batch.len()]));
                    extras.len() - 1
                });
                extras[at].1[i] = Some(value);
            }
        }
        batch.extras = extras;
        Ok(())
    }

    /// Writes the step's trajectories to `trainer.rollout_data_dir`, if that is set.
    pub(super) fn dump(&self, batch: &Batch) -> Result<()> {
        match &self.config.trainer.rollout_data_dir {
            Some(folder) => self.write_generations(folder.as_path(), &self.generations(batch)),
            None => Ok(()),
        }
    }

    /// Writes JSON lines to verl's `<folder>/<step>.jsonl`.
    pub(super) fn write_generations(&self, folder: &Path, lines: &str) -> Result<()> {
        write_atomic(&folder.join(format!("{}.jsonl", self.step)), lines.as_bytes())
    }

    /// verl's JSON lines: one object per trajectory with input, output, gts, score, step and the extras.
    pub(super) fn generations(&self, batch: &Batch) -> String {
        let scores = batch.totals(&batch.scores);
        let mut lines = String::new();
        for (i, score) in scores.iter().enumerate() {
            let prompt = batch.prompt(i);
            let mut row = Map::new();
            row.insert("input".into(), prompt.text.clone().into());
            row.insert("output".into(), batch.texts[i].clone().into());
            row.insert("gts".into(), prompt.ground_truth.clone());
            row.insert("score".into(), json!(score));
            row.insert("step".into(), self.step.into());
            row.extend(batch.extras.iter().filter_map(|(name, values)| Some((name.clone(), json!(values[i]?)))));
            lines.push_str(&Value::Object(row).to_string());
            lines.push('\n');
        }
        lines
    }
}
