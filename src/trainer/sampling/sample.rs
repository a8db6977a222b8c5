//! Samples the responses of a batch, plain ones or conversations, and hands each to scoring when it ends.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::scoring::{DecodedResponse, OnResponse, Scoring};
use super::side::SamplingSide;
use crate::job::Context;
use crate::job::agents::Agents;
use burnish_agent::{Conversations, SharedOptions};
use burnish_data::{Prompt, completes_stop};
use burnish_engine::{Engine, GenerationRequest};
use burnish_model::CausalLm;
use burnish_reward::Conversation as _;
use burnish_rollout::{Response, Sampling, TurnSettings};
use burnish_util::rng::Stream;

/// A request for responses to a batch of prompts.
pub(super) struct SampleRequest<'a> {
    /// Purpose of the random streams.
    pub purpose: &'a str,
    pub prompts: Vec<Arc<Prompt>>,
    /// Responses per prompt.
    pub n: usize,
    pub sampling: Sampling,
    /// Additional keys of the random streams.
    pub keys: &'a [u64],
}

/// The responses to a batch of prompts, with pending scores.
pub(super) struct Sampled {
    pub prompts: Vec<Arc<Prompt>>,
    /// Responses per prompt.
    pub n: usize,
    /// In the order p0 s0, p0 s1, …, p1 s0, ….
    pub responses: Vec<DecodedResponse>,
    /// Time that scoring took after the last response ended.
    pub waited: Duration,
}

impl SamplingSide {
    /// Samples responses, and starts to score each when it ends. The random stream of a response is keyed by purpose, step, row,
    /// sample and `keys`. Each rank samples for its share of the prompts, and returns the responses to all prompts.
    pub(super) fn sample(&mut self, policy: &CausalLm, request: SampleRequest, at: &Context) -> Result<Sampled> {
        let opened = self.record(policy, at);
        self.ranks.agree(opened)?;
        let own = &request.prompts[self.ranks.share(request.prompts.len())];
        let share = Share { request: &request, prompts: own, seed: self.config.trainer.seed, step: at.step };
        let (rewards, tokenizer, progress, n) = (&self.rewards, &self.tokenizer, &at.progress, request.n);
        let scoring = Scoring { rewards, tokenizer, prompts: own, n, step: at.step };
        let stop = &self.config.actor_rollout_ref.rollout.stop;
        let stops = |ids: &[u32]| completes_stop(&self.tokenizer, stop, ids, false);
        let settings = TurnSettings {
            eos: &self.stop_ids,
            stops: if stop.is_empty() { None } else { Some(&stops) },
            rules: self.rules.as_ref(),
            progress: Some(&|done| {
                progress.generating(done.finished, done.total, done.tokens);
                self.ranks.beat();
            }),
            token: None,
        };
        let (engine, ranks) = (self.engine.as_mut(), &self.ranks);
        let scored = scoring.run(self.config.reward.num_workers, ranks, |finished| match &self.agents {
            None => sample_plain(engine, policy, &share, &settings, finished),
            Some(agents) => {
                let conversations = ConversationSettings { agents, ends_run: rewards.fails(), waiting: &|| ranks.beat() };
                sample_conversations(engine, policy, &share, &settings, &conversations, finished)
            }
        });
        let (responses, waited) = self.ranks.agree(scored)?;
        let responses = self.ranks.concat(responses);
        Ok(Sampled { n, responses, waited, prompts: request.prompts })
    }
}

/// The prompts of one rank, and the random streams and names of their responses. Index `i` counts responses: p0 s0, p0 s1, …, p1
/// s0, ….
struct Share<'a> {
    request: &'a SampleRequest<'a>,
    prompts: &'a [Arc<Prompt>],
    seed: u64,
    step: u64,
}

impl Share<'_> {
    fn responses(&self) -> usize {
        self.prompts.len() * self.request.n
    }

    fn prompt(&self, i: usize) -> &Arc<Prompt> {
        &self.prompts[i / self.request.n]
    }

    /// Returns the keys of a response: step, row, sample, and the request's keys.
    fn keys(&self, i: usize) -> Vec<u64> {
        [&[self.step, self.prompt(i).index as u64, (i % self.request.n) as u64], self.request.keys].concat()
    }

    fn stream(&self, i: usize) -> Stream {
        Stream::new(self.seed, self.request.purpose, &self.keys(i))
    }

    /// Returns the random stream of a turn. The first turn has the stream of a plain response.
    fn stream_of_turn(&self, i: usize, turn: usize) -> Stream {
        if turn == 0 {
            return self.stream(i);
        }
        let keys = [self.keys(i), vec![u64::MAX, turn as u64]].concat();
        Stream::new(self.seed, self.request.purpose, &keys)
    }

    /// Returns the name of a conversation, the same in a resumed run.
    fn name(&self, i: usize) -> String {
        let keys: Vec<String> = self.keys(i).iter().map(u64::to_string).collect();
        format!("{}-{}", self.request.purpose, keys.join("-"))
    }
}

/// Samples responses of one turn. All greedy responses to a prompt are the same, so each is generated once and copied.
fn sample_plain(
    engine: &mut dyn Engine,
    policy: &CausalLm,
    share: &Share,
    settings: &TurnSettings,
    finished: OnResponse,
) -> Result<()> {
    let SampleRequest { n, sampling, .. } = *share.request;
    let copies = if sampling.temperature <= 0.0 { n } else { 1 };
    let hand_over = |output: usize, response: &Response| {
        (0..copies).for_each(|copy| finished(output * copies + copy, response.clone(), None));
    };
    let ids: Vec<&[u32]> = share.prompts.iter().map(|prompt| prompt.ids.as_slice()).collect();
    let request = GenerationRequest {
        prompts: &ids,
        n: n / copies,
        sampling,
        eos: settings.eos,
        stops: settings.stops,
        rules: settings.rules,
        stream: &|prompt, sample| share.stream(prompt * n + sample),
        finished: Some(&hand_over),
        progress: settings.progress,
    };
    engine.generate(policy, &request).map(drop)
}

/// The parts of sampling that only conversations have.
struct ConversationSettings<'a> {
    agents: &'a Agents,
    /// True if a failed score ends the run.
    ends_run: bool,
    /// Called now and then while all conversations wait.
    waiting: &'a (dyn Fn() + Sync),
}

/// Leads conversations. Responses in the record of a resumed run are taken from the record.
fn sample_conversations(
    engine: &mut dyn Engine,
    policy: &CausalLm,
    share: &Share,
    settings: &TurnSettings,
    ConversationSettings { agents, ends_run, waiting }: &ConversationSettings,
    finished: OnResponse,
) -> Result<()> {
    let sampling = share.request.sampling;
    let (mut places, mut loops) = (Vec::new(), Vec::new());
    for i in 0..share.responses() {
        match agents.recorder().and_then(|recorder| recorder.ended(&share.name(i))) {
            Some(episode) => finished(i, episode.response(), Some(episode)),
            None => {
                let prompt = share.prompt(i);
                loops.push(agents.begin(prompt, &share.name(i), &sampling).with_context(|| prompt.place())?);
                places.push(i);
            }
        }
    }
    if loops.is_empty() {
        return Ok(());
    }
    let common = SharedOptions {
        sampling,
        stream: &|conversation, turn| share.stream_of_turn(places[conversation], turn),
        finished: &|conversation, episode| {
            let i = places[conversation];
            // A conversation whose failure ends the run is not recorded: the resumed run leads it again, once its cause is gone.
            let fails = *ends_run && matches!(episode.verdict(), Some(Err(_)));
            if let Some(recorder) = agents.recorder().filter(|_| !fails) {
                recorder.record_end(&share.name(i), &episode);
            }
            finished(i, episode.response(), Some(episode));
        },
        waiting: *waiting,
    };
    Conversations::run(loops, common, |turns| engine.converse(policy, settings, turns))
}
