//! The end of a request: sampled tokens become JSON, whole or streamed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::body::Bytes;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;

use super::begin::StartedRequest;
use super::hub::SequenceEvent;
use super::request_log::{ANSWERED, RequestLog};
use super::service::ServeState;
use crate::job::generation::check_numbers;
use crate::job::openai::{events_of, response};
use burnish_agent::endpoint::{Api, ApiError, ChunkWriter, Completion, HttpReply, for_template, reply_json};
use burnish_rollout::{Response, TurnScores};
use burnish_server::{HttpResponse, ResponseBody};

/// The number of chunks that wait for a slow client; sampling does not wait for the client.
const PIECES: usize = 64;

impl ServeState {
    /// Replies when all tokens are sampled.
    ///
    /// # Errors
    /// If the engine stopped, or its tokens cannot be decoded.
    pub(super) async fn whole(
        self: Arc<Self>,
        mut begun: StartedRequest,
        log: &mut Option<RequestLog>,
    ) -> Result<HttpResponse, ApiError> {
        let count = begun.answered.prompts.len() * begun.parsed.options.n;
        let mut replies: Vec<Option<Completion>> = vec![None; count];
        let mut scores: Vec<Option<Box<TurnScores>>> = vec![None; count];
        while replies.iter().any(Option::is_none) {
            let (index, event) = begun.ticket.next().await.ok_or_else(broke_off)?;
            match event {
                SequenceEvent::Token(_) => {}
                SequenceEvent::Scores(of_sequence) => scores[index] = Some(of_sequence),
                SequenceEvent::End(response) => {
                    add(log.as_mut(), response.ids.len());
                    replies[index] = Some(self.reply(&begun, index, response)?);
                }
            }
        }
        let mut replies: Vec<Completion> = replies.into_iter().flatten().collect();
        if begun.parsed.options.scores().is_empty() {
            return Ok(response(HttpReply::Json(reply_json(&begun.answered, &begun.parsed.options, &replies))));
        }
        // Thousands of log-probabilities take time to write, and many times the memory of their text.
        let place = self.scored.clone().acquire_owned().await;
        let service = self.clone();
        let write = move || {
            let _place = place;
            for (index, (reply, scores)) in replies.iter_mut().zip(scores).enumerate() {
                let prompt = &begun.answered.prompts[index / begun.parsed.options.n.max(1)];
                scores.map_or(Ok(()), |scores| service.add_scores(prompt, reply, *scores))?;
            }
            Ok(response(HttpReply::Json(reply_json(&begun.answered, &begun.parsed.options, &replies))))
        };
        spawn_blocking(write).await.unwrap_or_else(|_| Err(not_written()))
    }

    /// Adds the scores of a choice to its reply.
    fn add_scores(&self, prompt: &[u32], reply: &mut Completion, scores: TurnScores) -> Result<(), ApiError> {
        let of_prompt = scores.prompt.iter().flat_map(|scores| &scores.log_probs);
        let all: Vec<f32> = of_prompt.chain(&scores.sampled.log_probs).copied().collect();
        check_numbers(&all).map_err(|wrong| ApiError::status(500, wrong.to_string()))?;
        self.facts.model.add_scores(reply, prompt, scores)
    }

    /// Streams chunks while tokens are sampled.
    pub(super) fn pieces(self: Arc<Self>, begun: StartedRequest, log: RequestLog) -> HttpResponse {
        let (pieces, receive) = channel(PIECES);
        tokio::spawn(async move {
            let mut log = log;
            match self.send(begun, &pieces, &mut log).await {
                Ok(true) => log.ended(200, ANSWERED),
                // Dropped without an end, the line says that the client left.
                Ok(false) => drop(log),
                Err(refused) => {
                    log.ended(200, format!("200, then {}", refused.message));
                    _ = pieces.send(ChunkWriter::failed(&refused.to_json()).into()).await;
                }
            }
        });
        events_of(ResponseBody::Pieces(receive))
    }

    /// Sends the chunks. Returns false if the client has left.
    async fn send(
        self: &Arc<Self>,
        mut begun: StartedRequest,
        pieces: &Sender<Bytes>,
        log: &mut RequestLog,
    ) -> Result<bool, ApiError> {
        let tokenizer = self.facts.model.renderer.tokenizer();
        let (options, reads_calls) = (begun.parsed.options.clone(), begun.parsed.tools.is_some());
        let mut writer = ChunkWriter::new(begun.answered.clone(), options, reads_calls, &self.facts.model.eos);
        let mut left = begun.answered.prompts.len() * begun.parsed.options.n;
        let mut scores: Vec<Option<Box<TurnScores>>> = vec![None; left];
        let mut chunks = writer.begin();
        loop {
            // If the channel is closed, the client has left, and the ticket ends the sequences.
            if !chunks.is_empty() && pieces.send(std::mem::take(&mut chunks).into()).await.is_err() {
                return Ok(false);
            }
            if left == 0 {
                return Ok(true);
            }
            let (index, event) = tokio::select! {
                next = begun.ticket.next() => next.ok_or_else(broke_off)?,
                () = pieces.closed() => return Ok(false),
            };
            match event {
                SequenceEvent::Token(id) => {
                    add(Some(log), 1);
                    chunks = writer.token(tokenizer, index, id);
                }
                SequenceEvent::Scores(of_sequence) => scores[index] = Some(of_sequence),
                SequenceEvent::End(response) => {
                    let mut reply = self.reply(&begun, index, response)?;
                    if let Some(scores) = scores[index].take() {
                        let (service, place) = (self.clone(), self.scored.clone().acquire_owned().await);
                        let prompt = begun.answered.prompts[index / begun.parsed.options.n.max(1)].clone();
                        let add = move || {
                            let _place = place;
                            service.add_scores(&prompt, &mut reply, *scores)?;
                            Ok(reply)
                        };
                        reply = spawn_blocking(add).await.unwrap_or_else(|_| Err(not_written()))?;
                    }
                    chunks = writer.end(tokenizer, index, &reply);
                    left -= 1;
                    if left == 0 {
                        chunks += &writer.done();
                    }
                }
            }
        }
    }

    /// Checks and decodes the sampled tokens, and records them if they belong to a conversation.
    fn reply(&self, begun: &StartedRequest, index: usize, response: Response) -> Result<Completion, ApiError> {
        let StartedRequest { answered, parsed, starts, .. } = begun;
        check_numbers(&response.rollout_log_probs).map_err(|wrong| ApiError::status(500, wrong.to_string()))?;
        let reply = self.facts.model.reply(parsed, response)?;
        self.counts.tokens.fetch_add(reply.response.ids.len() as u64, Ordering::Relaxed);
        // A request that samples nothing is not a turn.
        let turns = parsed.conversation.as_ref().filter(|_| parsed.options.max_tokens != Some(0));
        if let Some((key, start)) = turns.zip(starts.get(index / parsed.options.n.max(1))) {
            let message = (answered.api == Api::Chat).then(|| for_template(&answered.message(index, &reply)));
            self.with_record(|record| record.served(key, start, message, reply.response.clone()));
        }
        Ok(reply)
    }
}

/// Counts sampled tokens in the line of a request.
fn add(log: Option<&mut RequestLog>, sampled: usize) {
    if let Some((_, so_far)) = log.and_then(|log| log.tokens.as_mut()) {
        *so_far += sampled;
    }
}

fn not_written() -> ApiError {
    ApiError::status(500, "the reply could not be written")
}

fn broke_off() -> ApiError {
    ApiError::status(500, "the engine broke off")
}
