//! Scores responses while others are still being generated: each goes to one of `reward.num_workers` threads when it ends.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use burnish_agent::Episode;
use burnish_data::{Prompt, Tokenizer};
use burnish_distributed::Ranks;
use burnish_reward::{Conversation, PendingScores, Rewards, ScoreInput};
use burnish_rollout::Response;

/// A response that has ended, with the results of the functions that see only this response.
#[derive(Serialize, Deserialize)]
pub struct DecodedResponse {
    pub response: Response,
    /// Text without special tokens.
    pub text: String,
    /// Text with special tokens.
    pub raw: String,
    /// The conversation, if the response is one.
    pub episode: Option<Episode>,
    /// Text that the policy read first, if it differs from the prompt: a conversation may have changed it.
    pub prompt_text: Option<String>,
    /// `None` after an earlier response whose score failed, which ends the run.
    pub pending: Option<PendingScores>,
}

/// A function that receives a response, of one turn or a conversation, and its index among all responses.
pub(crate) type OnResponse<'a> = &'a (dyn Fn(usize, Response, Option<Episode>) + Sync);

/// The scoring of the responses of one batch.
pub struct Scoring<'a> {
    pub rewards: &'a Rewards,
    pub tokenizer: &'a Tokenizer,
    pub prompts: &'a [Arc<Prompt>],
    /// Responses per prompt.
    pub n: usize,
    pub step: u64,
}

impl Scoring<'_> {
    /// Scores the responses that `generate` hands over, in any order. Returns them in the order of the prompts, and the time of
    /// scoring after `generate` returned.
    ///
    /// # Errors
    /// The errors of `generate`; if ids cannot be decoded.
    pub fn run(
        &self,
        workers: usize,
        ranks: &Ranks,
        generate: impl FnOnce(OnResponse) -> Result<()>,
    ) -> Result<(Vec<DecodedResponse>, Duration)> {
        let mut ended: Vec<Mutex<Option<Result<DecodedResponse>>>> = Vec::new();
        ended.resize_with(self.prompts.len() * self.n, Mutex::default);
        // Index of the first response whose score failed.
        let failed = AtomicUsize::new(usize::MAX);
        let (hand_over, arrived) = mpsc::channel::<(usize, Response, Option<Episode>)>();
        let arrived = Mutex::new(arrived);
        let work = || {
            loop {
                let next = arrived.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((i, response, episode)) = next else { return };
                let result = self.end(i, response, episode, &failed);
                *ended[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        };
        let (generated, generated_at) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers.min(ended.len())).map(|_| scope.spawn(work)).collect();
            let finished = |i: usize, response: Response, episode: Option<Episode>| {
                // Workers end only when this sender is dropped.
                let _ = hand_over.send((i, response, episode));
            };
            let generated = generate(&finished);
            let generated_at = Instant::now();
            drop(hand_over);
            ranks.at_work(|| workers.into_iter().for_each(join));
            (generated, generated_at)
        });
        let waited = generated_at.elapsed();
        generated?;
        let ended = ended.into_iter().map(|one| {
            one.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(|| Err(anyhow!("a response was lost")))
        });
        Ok((ended.collect::<Result<_>>()?, waited))
    }

    fn end(&self, i: usize, response: Response, episode: Option<Episode>, failed: &AtomicUsize) -> Result<DecodedResponse> {
        let text = self.tokenizer.decode(&response.ids, true)?;
        let raw = self.tokenizer.decode(&response.ids, false)?;
        let prompt = &self.prompts[i / self.n];
        let changed = episode.as_ref().filter(|episode| episode.prompt != prompt.ids);
        let prompt_text = changed.map(|episode| self.tokenizer.decode(&episode.prompt, false)).transpose()?;
        let mut decoded = DecodedResponse { response, text, raw, episode, prompt_text, pending: None };
        let input = input(prompt, &decoded, self.step);
        decoded.pending = self.rewards.begin_unless_failed(i, &input, failed);
        Ok(decoded)
    }
}

/// Waits for a worker, and passes on its panic.
fn join(worker: ScopedJoinHandle<()>) {
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Returns a response as reward functions see it.
pub fn input<'a>(prompt: &'a Prompt, decoded: &'a DecodedResponse, step: u64) -> ScoreInput<'a> {
    let DecodedResponse { response, text, raw, episode, prompt_text, .. } = decoded;
    let row = row(prompt);
    ScoreInput {
        solution: text,
        raw,
        token_ids: Some(&response.ids),
        prompt_text: prompt_text.as_deref().unwrap_or(row.prompt_text),
        conversation: episode.as_ref().map(|episode| episode as &dyn Conversation),
        step,
        ..row
    }
}

/// Returns a row as reward functions see it, without a response.
pub fn row(prompt: &Prompt) -> ScoreInput<'_> {
    // Plain text is the only message.
    let plain = || prompt.messages.get(0).and_then(|message| message.get("content")).unwrap_or(&Value::Null);
    ScoreInput {
        data_source: &prompt.data_source,
        ground_truth: &prompt.ground_truth,
        extra_info: &prompt.extra_info,
        prompt: if prompt.conversational { &prompt.messages } else { plain() },
        prompt_text: &prompt.text,
        columns: &prompt.columns,
        ..Default::default()
    }
}
