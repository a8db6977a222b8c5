//! The start of a request: its body becomes sequences to sample.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::hub::{SequenceRequest, Ticket};
use super::service::ServeState;
use burnish_agent::endpoint::{Api, ApiError, ContinuationKind, ParsedRequest, PromptTokens, ReplyHead, SamplingStart, digest};
use burnish_server::{BodyShare, RequestBody};
use burnish_util::excerpt::beginning;
use burnish_util::rng::Stream;
use burnish_util::time::unix_time;

/// A request whose sequences are sampled.
pub(crate) struct StartedRequest {
    pub answered: ReplyHead,
    /// The request without its prompts.
    pub parsed: ParsedRequest,
    /// The start of each prompt's responses, if the request belongs to a conversation.
    pub starts: Vec<SamplingStart>,
    pub ticket: Ticket,
    /// The share of the body, whose messages and tools are kept until the reply.
    _share: BodyShare,
}

impl ServeState {
    /// Parses a request and submits its sequences. Tokenizing takes time.
    ///
    /// # Errors
    /// If the request is wrong or too long, or if too many requests wait.
    pub(crate) fn begin(&self, api: Api, body: RequestBody, header: Option<&str>) -> Result<StartedRequest, ApiError> {
        let model = &self.facts.model;
        let mut parsed = model.read(api, &body.bytes, header)?;
        let share = body.into_share();
        let defaults = *model.renderer.defaults();
        let number = self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let (mut starts, mut ids) = (Vec::new(), Vec::new());
        for mut prompt in std::mem::take(&mut parsed.prompts) {
            parsed.options.sampling(prompt.ids.len(), &defaults)?;
            match &parsed.conversation {
                None => ids.push(prompt.ids),
                Some(key) => {
                    model.renderer.keep_read_fields(&mut prompt.messages);
                    let start = self.start(key, prompt, &parsed);
                    ids.push(start.ids.clone());
                    starts.push(start);
                }
            }
        }
        let (stop, options) = (parsed.stop(model), &parsed.options);
        let mut sequences = Vec::with_capacity(ids.len() * options.n);
        // Every choice of a text shows its prompt.
        let shown = if api == Api::Text { options.n } else { 1 };
        let (mut tokens, mut sampled) = (0_usize, 0_usize);
        for (prompt, ids) in ids.iter().enumerate() {
            let sampling = options.sampling(ids.len(), &defaults)?;
            tokens = tokens.saturating_add(ids.len().saturating_mul(shown));
            sampled = sampled.saturating_add(sampling.max_tokens.saturating_mul(options.n));
            let ids: Arc<[u32]> = ids.as_slice().into();
            for sample in 0..options.n {
                let place = [prompt as u64, sample as u64];
                let stream = match (options.seed, &parsed.conversation) {
                    (Some(seed), _) => Stream::new(seed, "serve seed", &place),
                    (None, Some(key)) => {
                        let before = starts.get(prompt).map_or(0, |start: &SamplingStart| start.requests);
                        Stream::new(self.facts.seed, "serve conversation", &[digest(key.as_bytes()), before, place[0], place[1]])
                    }
                    (None, None) => Stream::new(self.facts.seed, "serve", &[number, place[0], place[1]]),
                };
                sequences.push(SequenceRequest {
                    ids: ids.clone(),
                    sampling,
                    scores: options.scores(),
                    stream,
                    stop: stop.clone(),
                });
            }
        }
        options.check_scores(tokens, sampled)?;
        let ticket = self.hub.submit(sequences, options.stream, parsed.conversation.as_deref());
        let ticket = ticket.ok_or_else(|| ApiError::status(503, "too many requests wait for the model"))?;
        let prefix = if api == Api::Chat { "chatcmpl" } else { "cmpl" };
        let (created, name) = (unix_time() as u64, model.name.clone());
        let id = format!("{prefix}-{:x}{number:06x}", model.created);
        let answered = ReplyHead { api, id, model: name, created, prompts: ids, echoed: std::mem::take(&mut parsed.echoed) };
        Ok(StartedRequest { answered, parsed, starts, ticket, _share: share })
    }

    /// Returns the continuation of a conversation that a prompt belongs to.
    fn start(&self, key: &str, prompt: PromptTokens, parsed: &ParsedRequest) -> SamplingStart {
        let found = self.with_record(|record| record.find(key, &prompt, parsed.setting.hash));
        let start = self.facts.model.start(found, prompt, parsed);
        if let ContinuationKind::Broken(reason) = &start.way {
            tracing::warn!("the conversation {key:?} cannot be continued, and another trajectory begins: {}", beginning(reason));
        }
        start
    }
}
