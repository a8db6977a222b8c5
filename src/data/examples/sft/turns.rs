//! Finds what is learnt of a conversation, in its text.
//!
//! By marks: the template says itself what the assistant writes (`{% generation %}`), and is right also where it writes earlier turns
//! otherwise than the last. By prefixes: the beginning and the end of a turn are found by rendering what comes before it, with the
//! generation prompt, and what comes up to its end; both must be what the whole begins with. Nobody is asked to write the turns of
//! other roles than the assistant: the header of such a turn is what the template writes alike before two different texts of it. It is
//! an error, rather than a mask that is a token off, if a template writes earlier turns differently once others follow, or if the
//! first token of a text merges with the template's.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::data::examples::document::Document;
use crate::data::examples::seam::alike;
use crate::data::template_variables::TemplateVariables;
use crate::data::tokenizer::Tokenizer;

/// A message that is learnt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub index: usize,
    pub weight: f32,
}

/// A part of a conversation's text that is learnt.
pub(super) struct Span {
    bytes: Range<usize>,
    weight: f32,
    /// The message, where the span was found by prefixes: it then ends with its last special token.
    message: Option<usize>,
}

/// The text, what of it is learnt, and what is to be said of it.
pub(super) type Found = (String, Vec<Span>, Option<&'static str>);

const NO_STOP: &str = "are trained to write a turn but not the token that ends it, which stands outside of the chat template's \
                       {% generation %} marks: the model may not learn to stop";

/// Finds turns by the template's marks.
///
/// # Errors
/// If the template has none, or it is not clear whose they are and that matters.
pub(super) fn by_marks(messages: &Value, turns: &[Turn], tokenizer: &Tokenizer, variables: &TemplateVariables) -> Result<Found> {
    let Some(marked) = tokenizer.apply_marked_chat_template(messages, variables)? else {
        bail!(
            "data.assistant_mask=generation_tags, and the chat template has no {{% generation %}} marks; write \
             data.assistant_mask=auto, or put them into the template (model.custom_chat_template)"
        );
    };
    let same = turns.iter().all(|turn| turn.weight == turns[0].weight);
    ensure!(
        same || marked.spans.len() == turns.len(),
        "the messages weigh differently, and the chat template marks {} parts of {} messages of the assistant: it is not known which \
         is whose; write data.assistant_mask=prefix",
        marked.spans.len(),
        turns.len()
    );
    let weight = |i: usize| if same { turns[0].weight } else { turns[i].weight };
    let spans = marked.spans.iter().enumerate();
    let spans = spans.map(|(i, bytes)| Span { bytes: bytes.clone(), weight: weight(i), message: None }).collect();
    Ok((marked.text, spans, None))
}

/// Finds turns by what is rendered before them and with them.
///
/// # Errors
/// If that is not what the whole begins with.
pub(super) fn by_prefixes(
    messages: &[Value],
    turns: &[Turn],
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
) -> Result<Found> {
    let render = |count: usize, asks: bool| match count {
        0 => Ok(String::new()),
        count => tokenizer.apply_chat_template(&messages[..count].to_vec().into(), asks, variables),
    };
    let text = render(messages.len(), false)?;
    let span = |turn: &Turn| {
        let i = turn.index;
        let speaks = messages[i]["role"] == "assistant";
        if i == 0 && speaks {
            bail!("message 0 is the assistant's: a message that it answers must come first");
        }
        let (before, through) = (render(i, speaks)?, render(i + 1, false)?);
        if !through.starts_with(&before) || !text.starts_with(&through) {
            bail!("message {i}: {REWRITES}");
        }
        let start = match speaks {
            true => before.len(),
            false => {
                header_end(&messages[..=i], &before, &through, tokenizer, variables).with_context(|| format!("message {i}"))?
            }
        };
        Ok(Span { bytes: start..through.len(), weight: turn.weight, message: Some(i) })
    };
    let spans = turns.iter().map(span).collect::<Result<_>>()?;
    Ok((text, spans, None))
}

/// The end, in `through`, of what the template writes before the text of the last message: what it writes before two other texts, which
/// begin differently. `before`: the messages before the last one, rendered; `through`: all of them.
fn header_end(
    messages: &[Value],
    before: &str,
    through: &str,
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
) -> Result<usize> {
    let render = |text| {
        // It has the form of the message, for templates write a list of parts otherwise than a text.
        let last = messages.last().and_then(|message| saying(message, text)).context("its content is not text")?;
        let others = &messages[..messages.len() - 1];
        tokenizer.apply_chat_template(&[others, &[last]].concat().into(), false, variables)
    };
    let [one, other] = [render("a")?, render("b")?];
    let header = alike(&one, &other);
    ensure!(
        one != other && header.starts_with(before) && through.starts_with(header),
        "it is not known where its text begins, for what the chat template writes before it depends on the text; take \"{}\" out of \
         data.loss_roles, or give another template (model.custom_chat_template)",
        messages.last().and_then(|message| message["role"].as_str()).unwrap_or_default()
    );
    Ok(header.len())
}

/// A message with another text in the place of its content, or of the first part of it; `None` if there is no text.
fn saying(message: &Value, text: &str) -> Option<Value> {
    let mut message = message.clone();
    let content = message.get_mut("content")?;
    let place = match content {
        Value::Array(parts) => match parts.first_mut()? {
            part @ Value::String(_) => part,
            part => part.get_mut("text")?,
        },
        content => content,
    };
    place.is_string().then(|| *place = text.into())?;
    Some(message)
}

const REWRITES: &str = "the text of the conversation up to here is not what the whole conversation begins with: the chat template \
                        writes a turn differently when others follow (as some do with <think>); give a template that does not, or one \
                        with {% generation %} marks around what the assistant says (model.custom_chat_template)";

impl Span {
    /// Sets the weights of the span's tokens. Returns what is to be said of it.
    ///
    /// # Errors
    /// If a token reaches over its beginning, or it was found by prefixes and no special token ends it.
    pub fn weigh(&self, document: &mut Document, bytes: &[Range<usize>], tokenizer: &Tokenizer) -> Result<Option<&'static str>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let first = bytes.partition_point(|token| token.end <= self.bytes.start);
        let behind = first + bytes[first..].partition_point(|token| token.start < self.bytes.end);
        let Some(message) = self.message else {
            document.weights[first..behind].fill(self.weight);
            let stops = document.ids[first..behind].iter().any(|id| tokenizer.is_special(*id));
            return Ok((!stops && self.weight != 0.0).then_some(NO_STOP));
        };
        if bytes.get(first).is_some_and(|token| token.start < self.bytes.start) {
            bail!(
                "message {message}: its text begins with characters that merge with the template's to one token; change the text, or \
                 the template (model.custom_chat_template)"
            );
        }
        // Text that the template writes after the end of the turn, such as a newline, is never generated.
        let end = (first..behind).rev().find(|&i| tokenizer.is_special(document.ids[i])).with_context(|| {
            format!(
                "message {message}: the chat template ends the turn with no special token, so a model could not learn to stop; give \
                 another template (model.custom_chat_template)"
            )
        })?;
        document.weights[first..=end].fill(self.weight);
        Ok(None)
    }
}
