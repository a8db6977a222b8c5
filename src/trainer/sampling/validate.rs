//! Phase `testing`: the validation prompts, sampled by `rollout.val_kwargs` and scored.

use anyhow::Result;

use super::sample::SampleRequest;
use super::samples::{generations, question, sample_of, show, write_generations};
use super::side::SamplingSide;
use super::val_metrics::{self, SampleGroup};
use crate::job::Context;
use crate::trainer::batch::Batch;
use crate::trainer::metrics::{spread, turns};
use burnish_data::named_source;
use burnish_model::CausalLm;
use burnish_rollout::Sampling;
use burnish_run::Sample;
use burnish_tracking::Metrics;
use burnish_util::rng::Stream;

impl SamplingSide {
    /// Samples and scores the validation prompts. Returns [`val_metrics::metrics`] and verl's `val-aux/num_turns/*`. Only the
    /// temperature decides whether responses are sampled, as in verl 0.7 and later; up to 0.4, `do_sample=false` was greedy.
    pub fn validate(&mut self, policy: &CausalLm, at: &mut Context) -> Result<Metrics> {
        let kwargs = &self.config.actor_rollout_ref.rollout.val_kwargs;
        let sampling = Sampling {
            temperature: kwargs.temperature as f32,
            top_k: usize::try_from(kwargs.top_k).unwrap_or(0),
            top_p: kwargs.top_p as f32,
            ..self.sampling
        };
        let n = kwargs.n;
        let prompts = self.val.clone();
        let size = self.config.data.val_batch_size.unwrap_or(prompts.len());
        let (mut groups, mut all_turns) = (Vec::new(), Vec::new());
        let chosen = self.chosen_generations(n);
        let (mut shown, mut done) = (Vec::new(), 0);
        let mut lines = String::new();
        for chunk in prompts.chunks(size) {
            let sampled =
                self.sample(policy, SampleRequest { purpose: "validate", prompts: chunk.to_vec(), n, sampling, keys: &[] }, at)?;
            let batch = self.score(sampled, at)?;
            groups.extend(groups_of(&batch, n));
            all_turns.extend(turns(&batch));
            for i in 0..batch.len() {
                if let Some(place) = chosen.iter().position(|&one| one == done + i) {
                    shown.push((place, sample_of(&batch, i, "val", &self.tokenizer, at.step)?, question(batch.prompt(i))));
                }
            }
            done += batch.len();
            lines.push_str(&generations(&batch, at.step));
        }
        if let Some(folder) = &self.config.trainer.validation_data_dir {
            at.ranks.first(|| write_generations(folder.as_path(), at.step, &lines))?;
        }
        shown.sort_by_key(|(place, ..)| *place);
        let (shown, questions): (Vec<Sample>, Vec<String>) =
            shown.into_iter().map(|(_, sample, question)| (sample, question)).unzip();
        if !shown.is_empty() {
            show(&shown, questions, "val_generations", at);
        }
        let mut metrics = val_metrics::metrics(&groups, n);
        spread("val-aux/num_turns", &all_turns, &mut metrics);
        Ok(metrics)
    }

    /// Returns the indices of the `trainer.log_val_generations` responses to show, in order: the same prompts each time.
    fn chosen_generations(&self, n: usize) -> Vec<usize> {
        let mut responses: Vec<usize> = (0..self.val.len() * n).collect();
        // Equal prompts keep the order of their samples.
        responses.sort_by(|&a, &b| self.val[a / n].text.cmp(&self.val[b / n].text));
        // A separate seed, like verl's RandomState(42): trainer.seed does not change which prompts are shown.
        Stream::new(42, "shown validation samples", &[]).shuffle(&mut responses);
        responses.truncate(self.config.trainer.log_val_generations);
        responses
    }
}

/// Returns the score and the other values of each prompt's samples, and their answers.
fn groups_of(batch: &Batch, n: usize) -> Vec<SampleGroup> {
    let variables = std::iter::once(("reward", batch.trajectory_scores())).chain(batch.extras());
    let mut groups = Vec::new();
    for (variable, values) in variables {
        for (place, prompt) in batch.prompts.iter().enumerate() {
            let samples = place * n..(place + 1) * n;
            // Another data source's scorer may know the variable when this one's does not.
            let known: Vec<usize> = samples.filter(|&i| values[i].is_some()).collect();
            if known.is_empty() {
                continue;
            }
            groups.push(SampleGroup {
                data_source: named_source(&prompt.data_source).to_owned(),
                variable: variable.to_owned(),
                values: known.iter().filter_map(|&i| values[i]).collect(),
                answers: known.iter().map(|&i| batch.scores[i].pred.clone()).collect(),
            });
        }
    }
    groups
}
