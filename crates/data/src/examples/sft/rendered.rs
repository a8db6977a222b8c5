//! A rendered conversation in tokens, and the input for finding its turns.

use std::cell::Cell;
use std::ops::Range;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// A rendered conversation in tokens.
pub(super) struct RenderedConversation {
    pub text: String,
    pub ids: Vec<u32>,
    /// Byte range of each token in `text`.
    pub bytes: Vec<Range<usize>>,
}

/// Largest amount of rendered text for finding the turns of one conversation, in bytes: about 10 s on one core. Each turn takes
/// renderings of the messages before it, so the amount grows with the square of the number of turns.
pub(super) const MOST_WORK: usize = 4 << 30;
/// Bytes of text that take the time of rendering one message without text.
const PER_MESSAGE: usize = 400;
/// Bytes of rendered text that take the time of one byte that is tokenized.
const PER_TOKENIZED_BYTE: usize = 100;

/// The amount of text that was rendered to find turns, and its limit.
pub(super) struct RenderWork {
    done: Cell<usize>,
    most: usize,
}

impl RenderWork {
    pub(super) fn at_most(most: usize) -> Self {
        Self { done: Cell::new(0), most }
    }

    fn add(&self, bytes: usize) {
        self.done.set(self.done.get().saturating_add(bytes));
    }

    /// Refuses a conversation that takes more than the limit.
    ///
    /// # Errors
    /// The number of messages, and a remedy.
    pub(super) fn check(&self, messages: usize) -> Result<()> {
        ensure!(
            self.done.get() <= self.most,
            "the chat template writes no marks around the assistant's text, so each turn is found by rendering the messages before \
             it, which takes too long for {messages} messages; split the conversation, or use a chat template with {{% generation %}} \
             marks (model.custom_chat_template), which takes one rendering"
        );
        Ok(())
    }
}

/// A conversation for finding turns.
pub(super) struct TurnFinder<'a> {
    pub messages: &'a [Value],
    pub tokenizer: &'a Tokenizer,
    pub variables: &'a TemplateVariables,
    pub full: RenderedConversation,
    /// True if the beginning of a thought in the generation prompt belongs to the turn.
    pub(crate) keeps_thoughts: bool,
    pub work: RenderWork,
}

impl RenderedConversation {
    pub(super) fn encode(text: String, tokenizer: &Tokenizer) -> Result<Self> {
        let (ids, bytes) = tokenizer.encode_with_bytes(&text)?;
        Ok(Self { text, ids, bytes })
    }

    /// Returns the tokens that overlap this byte range.
    pub(super) fn tokens(&self, bytes: Range<usize>) -> Range<usize> {
        let first = self.bytes.partition_point(|token| token.end <= bytes.start);
        first..first + self.bytes[first..].partition_point(|token| token.start < bytes.end)
    }
}

impl TurnFinder<'_> {
    /// Renders messages with the conversation's variables. `asks`: adds a generation prompt.
    ///
    /// # Errors
    /// If the template fails, or the conversation takes too much work.
    pub(super) fn render(&self, messages: Vec<Value>, asks: bool) -> Result<String> {
        self.work.add(PER_MESSAGE * messages.len());
        self.work.check(self.messages.len())?;
        let text = self.tokenizer.apply_chat_template(&messages.into(), asks, self.variables)?;
        self.work.add(text.len());
        Ok(text)
    }

    /// Tokenizes a rendering of some of the messages.
    ///
    /// # Errors
    /// If the tokenizer fails, or the conversation takes too much work.
    pub(super) fn encode(&self, text: String) -> Result<RenderedConversation> {
        self.work.add(PER_TOKENIZED_BYTE.saturating_mul(text.len()));
        self.work.check(self.messages.len())?;
        RenderedConversation::encode(text, self.tokenizer)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::tokens::tokenizer::Tokenizer;

    /// Counts work, not time: the limit ends the search at the same turn on each machine.
    #[test]
    fn many_turns_end_with_a_clear_error_at_the_limit() {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/calculator/model");
        let tokenizer = Tokenizer::load(&model).unwrap();
        let variables = TemplateVariables::default();
        let role = |i: usize| if i.is_multiple_of(2) { "user" } else { "assistant" };
        let say = |i: usize| json!({"role": role(i), "content": i.to_string()});
        let messages: Vec<Value> = (0..200).map(say).collect();
        let whole = |messages: &[Value]| {
            let text = tokenizer.apply_chat_template(&messages.to_vec().into(), false, &variables).unwrap();
            RenderedConversation::encode(text, &tokenizer).unwrap()
        };
        let work = |count: usize, most: usize| {
            let messages = &messages[..count];
            let work = RenderWork::at_most(most);
            let variables = &variables;
            let finder =
                TurnFinder { messages, tokenizer: &tokenizer, variables, full: whole(messages), keeps_thoughts: true, work };
            (1..count).step_by(2).try_for_each(|i| finder.find(i).map(drop)).map(|()| finder.work.done.get())
        };
        let [short, long] = [50, 200].map(|count| work(count, usize::MAX).unwrap());
        assert!((10..20).contains(&(long / short)), "the work grows with the square: {short}, {long}");
        assert_eq!(work(200, long).unwrap(), long);
        let error = work(200, long / 2).unwrap_err().to_string();
        assert!(error.contains("too long for 200 messages") && error.contains("{% generation %}"), "{error}");
    }
}
