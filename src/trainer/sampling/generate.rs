//! Phases `gen`, `reward` and `gen_max`: the scored trajectories of a step, from the actor itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::reported::ReportedNames;
use super::scoring::{DecodedResponse, Scoring};
use super::side::SamplingSide;
use crate::job::Context;
use crate::job::clock::Clock;
use crate::trainer::batch::Batch;
use crate::trainer::columns::Column;
use crate::trainer::turn_rewards;
use burnish_agent::{Common, Conversations};
use burnish_algorithm::filter_groups::keep_groups;
use burnish_algorithm::reward_shaping::RewardShaping;
use burnish_data::{Prompt, completes_stop};
use burnish_engine::GenerationRequest;
use burnish_model::CausalLm;
use burnish_reward::Conversation as _;
use burnish_rollout::{Response, Sampling, TurnSettings};
use burnish_tracking::Metrics;
use burnish_util::rng::Stream;

impl SamplingSide {
    /// `data.train_batch_size` prompts with `rollout.n` scored responses each. With `algorithm.filter_groups` (DAPO's dynamic
    /// sampling) those whose responses differ, sampling further prompts until there are enough.
    ///
    /// # Errors
    /// The errors of generation and scoring, and `max_num_gen_batches` batches without enough such prompts; 0 or less never
    /// gives up.
    pub fn rollout(
        &mut self,
        policy: &CausalLm,
        reported: &mut ReportedNames,
        at: &Context,
        clock: &mut Clock,
        metrics: &mut Metrics,
    ) -> Result<Batch> {
        let filter = self.config.algorithm.filter_groups.clone();
        let wanted = self.plan.prompts_per_step;
        let (n, sampling) = (self.plan.samples_per_prompt, self.sampling);
        let mut kept: Option<Batch> = None;
        let (mut round, mut sampled) = (0, 0);
        loop {
            round += 1;
            let prompts = self.sampler.next_batch().into_iter().map(|i| self.train[i].clone()).collect();
            // A later round may see a prompt of this step again: its responses must be others.
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
            let chosen = batch.select(&keep_groups(&batch.group, &values, filter.mean_range));
            let batch = match kept.take() {
                Some(mut kept) => {
                    kept.append(chosen);
                    kept
                }
                None => chosen,
            };
            let found = batch.prompts.len();
            if found >= wanted {
                metrics.set("train/num_gen_batches", round as f64);
                metrics.set("training/filter_groups/evicted_samples", (sampled - found) as f64);
                metrics.set("training/filter_groups/discarded_surplus_samples", (found - wanted) as f64);
                return Ok(batch.select(&(0..batch.len()).filter(|&i| batch.group[i] < wanted).collect::<Vec<_>>()));
            }
            let limit = u64::try_from(filter.max_num_gen_batches).ok().filter(|&limit| limit > 0);
            if Some(round) == limit {
                bail!(
                    "{round} batches gave {found} of {wanted} prompts that algorithm.filter_groups keeps by {metric}: the task may be \
                     too easy or too hard for the model; raise algorithm.filter_groups.max_num_gen_batches (0 = no limit), \
                     data.gen_batch_size or actor_rollout_ref.rollout.n"
                );
            }
            if is_told(round) {
                let times = sampled as f64 / self.train.len() as f64;
                let limit = match limit {
                    None => "it goes on without limit (algorithm.filter_groups.max_num_gen_batches)".to_owned(),
                    Some(limit) => format!("it gives up after {limit}"),
                };
                tracing::warn!(
                    "step {}: {found} of {wanted} prompts after {round} batches of dynamic sampling, {times:.1} times the data; {limit}; \
                     prompts whose responses all have the same {metric} are too easy or too hard for the model",
                    at.step
                );
            }
            kept = Some(batch);
        }
    }

    /// For estimators that compare with it: each trajectory's score of the greedy response to its prompt. Where that has no
    /// score, its trajectories have nothing to be compared with, and count as not scored.
    pub fn greedy_baselines(
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
        let earned = greedy.episodes.iter().map(|episode| turn_rewards::beside(self.turn_rewards, episode.as_deref()));
        scores.iter_mut().zip(earned).for_each(|(score, earned)| *score = score.map(|score| score + earned));
        batch_shaping.apply(&mut scores, &[], &[]);
        for (score, &group) in batch.scores.iter_mut().zip(&batch.group) {
            score.score = score.score.filter(|_| scores[group].is_some());
        }
        let baselines = batch.group.iter().map(|&group| scores[group].unwrap_or(0.0) as f32).collect();
        batch.set(Column::RewardBaselines, baselines);
        Ok(())
    }

    /// Samples responses, and begins to score each when it ends. The stream of a response is keyed by purpose, step, row, sample and
    /// `keys`. Greedy ones to a prompt are all the same, and generated once. Each rank takes its share of the prompts, and gets the
    /// responses to all of them.
    pub(super) fn sample(&mut self, policy: &CausalLm, request: SampleRequest, at: &Context) -> Result<Sampled> {
        let SampleRequest { purpose, prompts, n, sampling, keys } = request;
        let opened = self.record(policy, at);
        self.ranks.agree(opened)?;
        let own = &prompts[self.ranks.share(prompts.len())];
        let ids: Vec<&[u32]> = own.iter().map(|p| p.ids.as_slice()).collect();
        let (seed, step) = (self.config.trainer.seed, at.step);
        let stream = |prompt: usize, sample: usize| {
            let row = own[prompt].index as u64;
            Stream::new(seed, purpose, &[&[step, row, sample as u64], keys].concat())
        };
        let stop = &self.config.actor_rollout_ref.rollout.stop;
        let stops = |ids: &[u32]| completes_stop(&self.tokenizer, stop, ids, false);
        let (rewards, tokenizer, progress) = (&self.rewards, &self.tokenizer, &at.progress);
        let scoring = Scoring { rewards, tokenizer, prompts: own, n, step };
        let copies = if sampling.temperature <= 0.0 { n } else { 1 };
        let request = GenerationRequest {
            prompts: &ids,
            n: n / copies,
            sampling,
            eos: &self.stop_ids,
            stops: if stop.is_empty() { None } else { Some(&stops) },
            rules: self.rules.as_ref(),
            stream: &stream,
            finished: None,
            progress: Some(&|done| {
                progress.generating(done.finished, done.total, done.tokens);
                self.ranks.beat();
            }),
        };
        let (engine, agents, ranks) = (&mut self.engine, &self.agents, &self.ranks);
        let scored = scoring.run(self.config.reward.num_workers, ranks, |finished| match agents {
            Some(agents) => {
                let name = |i: usize| {
                    let keys = [&[step, own[i / n].index as u64, (i % n) as u64], keys].concat();
                    let keys: Vec<String> = keys.iter().map(u64::to_string).collect();
                    format!("{purpose}-{}", keys.join("-"))
                };
                let (mut places, mut loops) = (Vec::new(), Vec::new());
                for i in 0..own.len() * n {
                    if let Some(episode) = agents.recorder().and_then(|recorder| recorder.ended(&name(i))) {
                        finished(i, episode.response(), Some(episode));
                        continue;
                    }
                    loops.push(agents.begin(&own[i / n], &name(i), &sampling).with_context(|| own[i / n].place())?);
                    places.push(i);
                }
                if loops.is_empty() {
                    return Ok(());
                }
                let common = Common {
                    sampling,
                    // The first turn has the stream that a response of one turn has.
                    stream: &|at, turn| match (places[at], turn) {
                        (i, 0) => stream(i / n, i % n),
                        (i, _) => {
                            let row = own[i / n].index as u64;
                            Stream::new(seed, purpose, &[&[step, row, (i % n) as u64], keys, &[u64::MAX, turn as u64]].concat())
                        }
                    },
                    finished: &|at, episode| {
                        let i = places[at];
                        // One whose failure ends the run is led again by the next, when its cause is gone.
                        let ends_run = rewards.fails() && matches!(episode.verdict(), Some(Err(_)));
                        if let Some(recorder) = agents.recorder().filter(|_| !ends_run) {
                            recorder.record_end(&name(i), &episode);
                        }
                        finished(i, episode.response(), Some(episode));
                    },
                    waiting: &|| ranks.beat(),
                };
                let GenerationRequest { eos, stops, rules, progress, .. } = request;
                let settings = TurnSettings { eos, stops, rules, progress, token: None };
                Conversations::run(loops, common, |turns| engine.converse(policy, &settings, turns))
            }
            None => {
                let each = |output: usize, response: &Response| {
                    (0..copies).for_each(|copy| finished(output * copies + copy, response.clone(), None))
                };
                engine.generate(policy, &GenerationRequest { finished: Some(&each), ..request }).map(|_| ())
            }
        });
        let (responses, waited) = self.ranks.agree(scored)?;
        let responses = self.ranks.concat(responses);
        Ok(Sampled { prompts, n, responses, waited })
    }
}

/// True if a search that has taken so many batches is worth a line: after 10, and each time that it has taken twice as many.
fn is_told(batches: u64) -> bool {
    batches.is_multiple_of(10) && (batches / 10).is_power_of_two()
}

/// A request to the engine.
pub struct SampleRequest<'a> {
    /// The purpose of the random streams.
    pub purpose: &'a str,
    pub prompts: Vec<Arc<Prompt>>,
    /// Responses to each prompt.
    pub n: usize,
    pub sampling: Sampling,
    /// Further keys of the random streams.
    pub keys: &'a [u64],
}

/// The responses to a batch of prompts, whose scores are pending.
pub struct Sampled {
    pub prompts: Vec<Arc<Prompt>>,
    /// Responses to each prompt.
    pub n: usize,
    /// In the order p0 s0, p0 s1, …, p1 s0, ….
    pub responses: Vec<DecodedResponse>,
    /// The time that scoring took after the last response was complete.
    pub waited: Duration,
}
