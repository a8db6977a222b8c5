//! Finds a turn in the rendered conversation.
//!
//! An assistant's turn begins after the generation prompt; the turn of another role begins with its text. A turn ends with the
//! last special token that the template writes after the message. With most templates, a rendered conversation begins with the
//! rendering of fewer messages, so positions are lengths of renderings. Other templates write a turn differently once others
//! follow (Qwen3 removes its thoughts). There, the message is found with a `probe`: the range that changes with its text. The
//! turn's opening is before this range, and its end after it.

use std::ops::Range;

use anyhow::{Result, bail, ensure};

use super::probe::{self, MessagePlace};
use super::rendered::TurnFinder;
use crate::examples::prompt_boundary::{alike, common};
use crate::template::content;

/// Texts around a thought in generation prompts.
const THOUGHTS: [[&str; 2]; 3] = [["<think>", "</think>"], ["<seed:think>", "</seed:think>"], ["[THINK]", "[/THINK]"]];

const MARK_IT: &str = "use a chat template with {% generation %} marks around the assistant's text (model.custom_chat_template)";

const NO_END: &str = "the chat template does not end the turn with a special token, so a model could not learn to stop; use another template \
                      (model.custom_chat_template)";

impl TurnFinder<'_> {
    /// Returns the byte range of message `i` in the whole, from the beginning of its turn to the token that ends it.
    ///
    /// # Errors
    /// If the message is not found, or no special token ends it.
    pub(super) fn find(&self, i: usize) -> Result<Range<usize>> {
        let is_last = i + 1 == self.messages.len();
        let through = if is_last { self.full.text.clone() } else { self.render(self.messages[..=i].to_vec(), false)? };
        let start = match self.speaks(i) {
            true => self.opened(i)?,
            false => self.headed(i)?,
        };
        if self.full.text.starts_with(&through)
            && let Some(end) = self.plain_end(i, start..through.len())
        {
            return Ok(start..end);
        }
        let Some(alone) = probe::place(self, &self.messages[..=i], i, &through) else { bail!(self.unwritten(i)) };
        let (place, bound) = match self.full.text.starts_with(&through) {
            true => (alone.clone(), through.len()),
            false => {
                let Some(place) = self.place(i) else { bail!(self.unwritten(i)) };
                let behind = alike(&self.full.text[place.content.end..], &through[alone.content.end..]).len();
                let end = place.content.end + (alone.end - alone.content.end);
                (MessagePlace { end, ..place.clone() }, place.content.end + behind)
            }
        };
        match self.last_end(place.end, bound) {
            Some(end) => Ok(start..end),
            None if self.full.text.starts_with(&through) => bail!("message {i}: {NO_END}"),
            None => Ok(start..self.other_end(i, &place, &through, alone.end)?),
        }
    }

    fn speaks(&self, i: usize) -> bool {
        self.messages[i]["role"] == "assistant"
    }

    fn place(&self, i: usize) -> Option<MessagePlace> {
        probe::place(self, self.messages, i, &self.full.text)
    }

    fn unwritten(&self, i: usize) -> String {
        let role = self.messages[i]["role"].as_str().unwrap_or_default();
        format!(
            "message {i}: the chat template does not write the text of the {role} in this conversation or in its beginning; use \
             another template (model.custom_chat_template)"
        )
    }

    /// Returns the beginning of an assistant's turn: after the text that a model is given to continue.
    fn opened(&self, i: usize) -> Result<usize> {
        // For the first message, the opening of a turn is taken from after the last message.
        let before = if i == 0 { self.messages } else { &self.messages[..i] };
        let prompt_text = self.render(before.to_vec(), true)?;
        let bare = without_thought(&prompt_text);
        let skipped = if self.keeps_thoughts { vec![bare] } else { vec![prompt_text.as_str(), bare] };
        if let Some(skipped) = skipped.iter().find(|skipped| i > 0 && self.full.text.starts_with(**skipped)) {
            return Ok(skipped.len());
        }
        let opens = self.added(&self.render(before.to_vec(), false)?, bare)?;
        let Some(content) = self.place(i).map(|place| place.content) else { bail!(self.unwritten(i)) };
        let from = self.behind_others(i, content.start);
        match from.filter(|_| !opens.is_empty()).and_then(|from| Some(from + self.full.text[from..content.start].find(&opens)?)) {
            Some(at) => Ok(at + opens.len()),
            None if opens.is_empty() => bail!(
                "message {i}: the chat template writes the text before the turn differently when others follow, and does not open a \
                 turn with a fixed text, so the beginning of the turn is unknown; {MARK_IT}"
            ),
            None => bail!(
                "message {i}: the chat template opens a turn with {opens:?} in a generation prompt, but not before this turn in the \
                 whole conversation, so the beginning of the turn is unknown; {MARK_IT}"
            ),
        }
    }

    /// Returns the text that a generation prompt adds to a conversation.
    fn added(&self, before: &str, prompt_text: &str) -> Result<String> {
        if let Some(added) = prompt_text.strip_prefix(before) {
            return Ok(added.to_owned());
        }
        let [asked, before] = [prompt_text, before].map(|text| self.encode(text.to_owned()));
        let asked = asked?;
        let same = common(&asked.ids, &before?.ids);
        Ok(asked.bytes.get(same).map_or("", |token| &prompt_text[token.start..]).to_owned())
    }

    /// Returns the end of the last message before `i` with a known position that ends by `until`; `None` if unclear.
    fn behind_others(&self, i: usize, until: usize) -> Option<usize> {
        for other in (0..i).rev() {
            let content = probe::content(self, self.messages, other, &self.full.text);
            if let Some(content) = content.filter(|content| content.end <= until) {
                return Some(content.end);
            }
            if self.speaks(other) {
                return None;
            }
        }
        Some(0)
    }

    /// Returns the beginning of the text of another role's message: after the text that the template writes before it.
    fn headed(&self, i: usize) -> Result<usize> {
        let role = self.messages[i]["role"].as_str().unwrap_or_default();
        let header = probe::header(self, i);
        let Some(header) = header.filter(|header| self.full.text.starts_with(header)) else {
            bail!(
                "message {i}: the beginning of its text is unknown, because the text that the chat template writes before it depends \
                 on it; remove \"{role}\" from data.loss_roles, or use another template (model.custom_chat_template)"
            );
        };
        Ok(header.len())
    }

    /// Returns the end of a turn in this byte range, if its text is right before the last special token or ends with that token,
    /// and nothing else follows.
    fn plain_end(&self, i: usize, bytes: Range<usize>) -> Option<usize> {
        let message = content::joined(&self.messages[i]);
        let content = message["content"].as_str()?.trim();
        let end = self.last_end(bytes.start, bytes.end)?;
        let token = self.full.tokens(bytes.start..end).next_back()?;
        let before = self.full.text.get(bytes.start..self.full.bytes[token].start)?;
        let alone = !content.is_empty() && !probe::has_calls(&message) && self.full.text[end..bytes.end].trim().is_empty();
        let ends_itself = self.full.text.get(bytes.start..end).is_some_and(|text| text.ends_with(content));
        (alone && (ends_itself || before.trim_end().ends_with(content))).then_some(end)
    }

    /// Returns the end of the last special token that ends after `from` and by `until`.
    fn last_end(&self, from: usize, until: usize) -> Option<usize> {
        let tokens = self.full.tokens(from..until.max(from));
        let ends = |token: &usize| {
            let end = self.full.bytes[*token].end;
            self.tokenizer.is_special(self.full.ids[*token]) && from < end && end <= until
        };
        tokens.rev().find(ends).map(|token| self.full.bytes[token].end)
    }

    /// Returns the end of a turn that the template ends with another token when others follow, as gpt-oss's does: the first
    /// special token after the message, if another special token comes before the next text and the first does not open turns.
    /// `through`: the conversation up to the message, which ends at `message_end`.
    fn other_end(&self, i: usize, place: &MessagePlace, through: &str, message_end: usize) -> Result<usize> {
        let alone = self.encode(through.to_owned())?;
        let special = |ids: &[u32]| ids.iter().copied().find(|id| self.tokenizer.is_special(*id));
        ensure!(special(&alone.ids[alone.tokens(message_end..through.len())]).is_some(), "message {i}: {NO_END}");
        let next = self.place(i + 1).map_or(self.full.text.len(), |place| place.content.start);
        let mut ends = self
            .full
            .tokens(place.end..next.max(place.end))
            .filter(|token| self.full.bytes[*token].end > place.end && self.tokenizer.is_special(self.full.ids[*token]));
        let opens = match i {
            0 => None,
            i => {
                let render = |asks| self.render(self.messages[..i].to_vec(), asks);
                special(&self.tokenizer.encode(&self.added(&render(false)?, &render(true)?)?)?)
            }
        };
        match (ends.next(), ends.next()) {
            (Some(end), Some(_)) if opens != Some(self.full.ids[end]) => Ok(self.full.bytes[end].end),
            _ => bail!(
                "message {i}: the chat template ends the turn with a special token only if it is the last turn, so the end of the turn \
                 is unknown; {MARK_IT}"
            ),
        }
    }
}

/// Returns a generation prompt without an opened or empty thought at its end.
fn without_thought(prompt_text: &str) -> &str {
    let without = |[open, close]: &[&str; 2]| {
        let rest = prompt_text.trim_end();
        let rest = rest.strip_suffix(close).unwrap_or(rest).trim_end();
        rest.strip_suffix(open)
    };
    THOUGHTS.iter().find_map(without).unwrap_or(prompt_text)
}
