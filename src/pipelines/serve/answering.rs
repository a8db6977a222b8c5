//! The end of an answer: from what is sampled to JSON, whole or in pieces.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tokio::sync::mpsc::{Sender, channel};

use super::begin::Begun;
use super::hub::Event;
use super::service::Service;
use crate::agent::endpoint::{Api, CallReading, ChunkWriter, Reading, Refused, Reply, answer, for_template};
use crate::rollout::Response;
use crate::server::{Body, HttpResponse, json_response};

/// The number of pieces of a stream that wait for a slow client; sampling does not wait for it.
const PIECES: usize = 64;

impl Service {
    /// Answers when everything is sampled.
    ///
    /// # Errors
    /// If the engine broke off, or what it sampled cannot be read.
    pub(super) async fn whole(&self, mut begun: Begun) -> Result<HttpResponse, Refused> {
        let count = begun.answered.prompts.len() * begun.options.n;
        let mut replies: Vec<Option<Reply>> = vec![None; count];
        while replies.iter().any(Option::is_none) {
            let (index, event) = begun.ticket.next().await.ok_or_else(broke_off)?;
            if let Event::End(response) = event {
                replies[index] = Some(self.reply(&begun, index, response)?);
            }
        }
        let replies: Vec<Reply> = replies.into_iter().flatten().collect();
        Ok(json_response(StatusCode::OK, &answer(&begun.answered, &begun.options, &replies)))
    }

    /// Answers in pieces, while tokens are sampled.
    pub(super) fn pieces(self: Arc<Self>, begun: Begun) -> HttpResponse {
        let (pieces, receive) = channel(PIECES);
        tokio::spawn(async move {
            if let Err(refused) = self.send(begun, &pieces).await {
                _ = pieces.send(ChunkWriter::failed(&refused.to_json()).into()).await;
            }
        });
        let mut response = HttpResponse::new(Body::Pieces(receive));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }

    async fn send(&self, mut begun: Begun, pieces: &Sender<Bytes>) -> Result<(), Refused> {
        let tokenizer = self.facts.renderer.tokenizer();
        let mut writer = ChunkWriter::new(begun.answered.clone(), begun.options.clone(), begun.tools.is_some());
        let mut left = begun.answered.prompts.len() * begun.options.n;
        let mut chunks = writer.begin();
        loop {
            // The client has left where nobody takes the pieces, and the ticket ends the sequences.
            if !chunks.is_empty() && pieces.send(std::mem::take(&mut chunks).into()).await.is_err() || left == 0 {
                return Ok(());
            }
            let (index, event) = tokio::select! {
                next = begun.ticket.next() => next.ok_or_else(broke_off)?,
                () = pieces.closed() => return Ok(()),
            };
            match event {
                Event::Token(id) => chunks = writer.token(tokenizer, index, id),
                Event::End(response) => {
                    let reply = self.reply(&begun, index, response)?;
                    chunks = writer.end(tokenizer, index, &reply);
                    left -= 1;
                    if left == 0 {
                        chunks += &writer.done();
                    }
                }
            }
        }
    }

    /// Reads what was sampled, and notes it where it belongs to a conversation.
    fn reply(&self, begun: &Begun, index: usize, response: Response) -> Result<Reply, Refused> {
        let Begun { answered, options, tools, parallel_calls, conversation, starts, .. } = begun;
        let calls = self.facts.format.zip(tools.as_ref());
        let calls = calls.map(|(format, tools)| CallReading { format, tools, parallel: *parallel_calls });
        let reading = Reading { tokenizer: self.facts.renderer.tokenizer(), options, eos: &self.facts.eos, calls };
        let reply = reading.read(response)?;
        self.counts.tokens.fetch_add(reply.response.ids.len() as u64, Ordering::Relaxed);
        if let Some((key, start)) = conversation.as_ref().zip(starts.get(index / options.n.max(1))) {
            let message = (answered.api == Api::Chat).then(|| for_template(&answered.message(index, &reply)));
            self.record().served(key, start, message, reply.response.clone());
        }
        Ok(reply)
    }
}

fn broke_off() -> Refused {
    Refused::status(500, "the engine broke off")
}
