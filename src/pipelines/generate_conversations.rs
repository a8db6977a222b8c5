//! The conversations of `trainer generate`: rows with tools, users or environments.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::job::agents::Agents;
use burnish_agent::{Conversations, Episode, FAULT, SharedOptions, Transcript};
use burnish_data::Prompt;
use burnish_engine::Engine;
use burnish_model::CausalLm;
use burnish_rollout::{Sampling, TurnSettings};
use burnish_util::rng::Stream;

/// The agents, and the rows of their conversations.
pub(crate) struct ConversationRows {
    pub agents: Agents,
    /// One for each row of the file, in its order.
    pub prompts: Vec<Arc<Prompt>>,
}

/// The sampling of turns.
pub(crate) struct TurnSampling<'a> {
    /// Responses per row.
    pub n: usize,
    pub seed: u64,
    pub sampling: Sampling,
    pub settings: TurnSettings<'a>,
}

impl ConversationRows {
    /// Runs the conversations of some rows to their ends. Returns them in the order p0 s0, p0 s1, …, p1 s0, …. Random streams and
    /// names of conversations contain the position of the row, so that they do not depend on other rows.
    ///
    /// # Errors
    /// The errors of the engine, and the errors of a conversation that end a run, with the name of the row.
    pub(super) fn lead(
        &self,
        rows: &[Arc<Prompt>],
        how: &TurnSampling,
        engine: &mut dyn Engine,
        model: &CausalLm,
    ) -> Result<Vec<Episode>> {
        let TurnSampling { n, seed, sampling, settings } = how;
        let place = |i: usize| (rows[i / n].index as u64, (i % n) as u64);
        let begin = |i: usize| {
            let (row, sample) = place(i);
            self.agents.begin(&rows[i / n], &format!("generate-{row}-{sample}"), sampling).with_context(|| rows[i / n].place())
        };
        let loops = (0..rows.len() * n).map(begin).collect::<Result<Vec<_>>>()?;
        let mut ended: Vec<Option<Episode>> = Vec::new();
        ended.resize_with(loops.len(), || None);
        let ended = Mutex::new(ended);
        let common = SharedOptions {
            sampling: *sampling,
            // The first turn has the stream of a response of one turn.
            stream: &|i, turn| {
                let (row, sample) = place(i);
                match turn {
                    0 => Stream::new(*seed, "generate", &[row, sample]),
                    _ => Stream::new(*seed, "generate", &[row, sample, turn as u64]),
                }
            },
            finished: &|i, episode| {
                ended.lock().unwrap_or_else(PoisonError::into_inner)[i] = Some(episode);
            },
            waiting: &|| (),
        };
        Conversations::run(loops, common, |turns| engine.converse(model, settings, turns))?;
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        ended.into_iter().map(|one| one.context("a conversation was lost")).collect()
    }
}

/// Returns the conversations of a row as a list of JSON texts.
///
/// # Errors
/// If a conversation cannot be serialised, which does not happen.
pub(super) fn written(episodes: &[Episode]) -> Result<Value> {
    let text = |episode| serde_json::to_string(&Transcript::from(episode)).map(Value::from);
    Ok(episodes.iter().map(text).collect::<Result<Vec<_>, _>>()?.into())
}

/// Counts of the outcomes of a file's conversations.
#[derive(Default)]
pub(super) struct Tally {
    ends: BTreeMap<&'static str, usize>,
    calls: usize,
    troubles: BTreeMap<&'static str, usize>,
    unreadable: usize,
    dropped: usize,
    fault: Option<String>,
}

impl Tally {
    /// Counts these conversations.
    pub(super) fn add(&mut self, episodes: &[Episode]) {
        for episode in episodes {
            *self.ends.entry(episode.end.name()).or_default() += 1;
            self.calls += episode.calls.len();
            for failure in episode.calls.iter().filter_map(|call| call.failure) {
                *self.troubles.entry(failure.name()).or_default() += 1;
            }
            self.unreadable += episode.unreadable_calls;
            self.dropped += episode.dropped_calls;
            if let (None, Some(fault)) = (&self.fault, episode.extra.get(FAULT)) {
                self.fault = Some(fault.as_str().map_or_else(|| fault.to_string(), str::to_owned));
            }
        }
    }

    /// Logs the ends of the conversations and their failures.
    pub(super) fn tell(&self) {
        let list = |counts: &BTreeMap<&str, usize>| {
            counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        tracing::info!("conversations ended: {}; {} calls of tools", list(&self.ends), self.calls);
        if !self.troubles.is_empty() {
            tracing::warn!("calls without a result of their tool: {}", list(&self.troubles));
        }
        if self.unreadable + self.dropped > 0 {
            tracing::warn!(
                "calls that did not run: {} could not be parsed, {} exceeded the limit of a turn (multi_turn.max_parallel_calls)",
                self.unreadable,
                self.dropped
            );
        }
        if let Some(fault) = &self.fault {
            tracing::warn!("the first error of a user, an environment, a program or a loop that ended a conversation: {fault}");
        }
    }
}
