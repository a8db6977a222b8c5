//! Phases `gen`, `reward` and `gen_max`: the scored trajectories of a step, sampled from the actor.

use anyhow::{Result, bail};

use super::discarded::{DiscardedGroups, reason};
use super::reported::ReportedNames;
use super::sample::SampleRequest;
use super::side::SamplingSide;
use crate::job::Context;
use crate::job::clock::StepClock;
use crate::trainer::batch::columns::Column;
use crate::trainer::batch::{Batch, turn_rewards};
use burnish_algorithm::filter_groups::keep_groups;
use burnish_algorithm::reward_shaping::RewardShaping;
use burnish_model::CausalLm;
use burnish_rollout::Sampling;
use burnish_tracking::Metrics;

impl SamplingSide {
    /// Returns `data.train_batch_size` prompts with `rollout.n` scored responses each. With `algorithm.filter_groups` (DAPO's
    /// dynamic sampling) keeps prompts whose responses differ, and samples more prompts until there are enough.
    ///
    /// # Errors
    /// The errors of generation and scoring; if `max_num_gen_batches` batches give too few prompts. 0 or less means no limit.
    pub fn rollout(
        &mut self,
        policy: &CausalLm,
        reported: &mut ReportedNames,
        at: &Context,
        clock: &mut StepClock,
        metrics: &mut Metrics,
    ) -> Result<Batch> {
        let filter = self.config.algorithm.filter_groups.clone();
        let requested = self.plan.prompts_per_step;
        let (n, sampling) = (self.plan.samples_per_prompt, self.sampling);
        let mut kept: Option<Batch> = None;
        self.discarded = DiscardedGroups::default();
        let (mut round, mut sampled) = (0, 0);
        loop {
            round += 1;
            let prompts = self.next_prompts()?;
            // A later round may repeat a prompt of this step, and must sample other responses.
            let keys: &[u64] = if round == 1 { &[] } else { &[round] };
            let generated = clock
                .time("gen", || self.sample(policy, SampleRequest { purpose: "rollout", prompts, n, sampling, keys }, at))?;
            clock.shift("gen", "reward", generated.waited);
            at.check_interrupt()?;
            let batch = clock.time("reward", || self.score(generated, at))?;
            reported.learn(&batch);
            at.check_interrupt()?;
            let Some(metric) = filter.metric.as_deref().filter(|_| filter.enable) else { return Ok(batch) };
            let values = reported.number(&batch, metric, "algorithm.filter_groups.metric")?;
            sampled += batch.prompts.len();
            let of_kept = keep_groups(&batch.group, &values, filter.mean_range, filter.tolerance);
            let mut is_kept = vec![false; batch.prompts.len()];
            of_kept.iter().for_each(|&i| is_kept[batch.group[i]] = true);
            self.discarded.add(&batch, &values, |group| !is_kept[group], |values| reason(metric, filter.mean_range, values));
            let chosen = batch.select(&of_kept);
            let batch = match kept.take() {
                Some(mut kept) => {
                    kept.append(chosen);
                    kept
                }
                None => chosen,
            };
            let found = batch.prompts.len();
            if found >= requested {
                metrics.set("train/num_gen_batches", round as f64);
                metrics.set("training/filter_groups/evicted_samples", (sampled - found) as f64);
                metrics.set("training/filter_groups/discarded_surplus_samples", (found - requested) as f64);
                let surplus = |_: &[Option<f64>]| "the step has enough prompts without it (data.train_batch_size)".to_owned();
                self.discarded.add(&batch, &vec![None; batch.len()], |group| group >= requested, surplus);
                return Ok(batch.select(&(0..batch.len()).filter(|&i| batch.group[i] < requested).collect::<Vec<_>>()));
            }
            let limit = u64::try_from(filter.max_num_gen_batches).ok().filter(|&limit| limit > 0);
            if Some(round) == limit {
                bail!(
                    "{round} batches gave {found} of {requested} prompts that algorithm.filter_groups keeps by {metric}: the task may be \
                     too easy or too hard for the model; raise algorithm.filter_groups.max_num_gen_batches (0 = no limit), \
                     data.gen_batch_size or actor_rollout_ref.rollout.n"
                );
            }
            if is_reported(round) {
                let times = sampled as f64 / self.train.len() as f64;
                let limit = match limit {
                    None => "it continues without limit (algorithm.filter_groups.max_num_gen_batches)".to_owned(),
                    Some(limit) => format!("it gives up after {limit}"),
                };
                tracing::warn!(
                    "step {}: {found} of {requested} prompts after {round} batches of dynamic sampling, {times:.1} times the data; {limit}; \
                     prompts whose responses all have the same {metric} are too easy or too hard for the model",
                    at.step
                );
            }
            kept = Some(batch);
        }
    }

    /// Writes for each trajectory the score of the greedy response to its prompt, for estimators that compare with it. If the
    /// greedy response has no score, its trajectories count as not scored.
    pub(crate) fn greedy_baselines(
        &mut self,
        policy: &CausalLm,
        batch_shaping: &RewardShaping,
        batch: &mut Batch,
        at: &Context,
    ) -> Result<()> {
        let sampling = Sampling { temperature: 0.0, ..self.sampling };
        let greedy = self.sample(
            policy,
            SampleRequest { purpose: "baseline", prompts: batch.prompts.clone(), n: 1, sampling, keys: &[] },
            at,
        )?;
        let greedy = self.score(greedy, at)?;
        let mut scores = greedy.trajectory_scores();
        let earned = greedy.episodes.iter().map(|episode| turn_rewards::placed_total(self.turn_rewards, episode.as_deref()));
        scores.iter_mut().zip(earned).for_each(|(score, earned)| *score = score.map(|score| score + earned));
        batch_shaping.apply(&mut scores, &[], &[]);
        for (score, &group) in batch.scores.iter_mut().zip(&batch.group) {
            score.score = score.score.filter(|_| scores[group].is_some());
        }
        let baselines = batch.group.iter().map(|&group| scores[group].unwrap_or(0.0) as f32).collect();
        batch.set(Column::RewardBaselines, baselines);
        Ok(())
    }
}

/// Returns true if a search of this many batches is worth a log line: after 10 batches, and after each doubling.
fn is_reported(batches: u64) -> bool {
    batches.is_multiple_of(10) && (batches / 10).is_power_of_two()
}
