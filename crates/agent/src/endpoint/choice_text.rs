//! The text of a response while its tokens arrive, so that the parts add up to the text of the whole response.

use super::completion::Completion;
use super::options::RequestOptions;
use super::stream_text::StreamText;
use burnish_data::Tokenizer;

/// The text of a response while its tokens arrive.
#[derive(Clone, Debug, Default)]
pub struct ChoiceText {
    text: StreamText,
    /// The last token, if it may have ended the response.
    last: Option<u32>,
    /// The text so far.
    sent: String,
}

impl ChoiceText {
    /// Takes a token, and returns the text that is now final. `ends`: the tokens that may end the response.
    pub fn token(&mut self, tokenizer: &Tokenizer, options: &RequestOptions, ends: &[u32], id: u32) -> String {
        // The token before did not end the response.
        let before = self.last.take();
        self.last = Some(id).filter(|id| ends.contains(id));
        let sure = before.into_iter().chain(Some(id).filter(|_| self.last.is_none()));
        let text: String = sure.map(|id| self.text.push(tokenizer, &options.stop, options.special_tokens, id)).collect();
        self.sent += &text;
        text
    }

    /// Returns the text that is still missing at the end of the response.
    pub fn rest(&mut self, tokenizer: &Tokenizer, options: &RequestOptions, reply: &Completion) -> String {
        if let Some(rest) = reply.content.strip_prefix(&self.sent) {
            return rest.to_owned();
        }
        // Bytes that did not form a whole character for long were sent verbatim, but the full response decodes them together.
        let last = self.last.take().filter(|_| reply.shows_last);
        let push = |id| self.text.push(tokenizer, &options.stop, options.special_tokens, id);
        let text = last.map(push).unwrap_or_default();
        text + &self.text.finish(tokenizer, options.special_tokens)
    }

    /// Returns the text so far.
    pub fn sent(&self) -> &str {
        &self.sent
    }
}
