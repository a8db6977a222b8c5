//! The learnt part of a conversation, in tokens.
//!
//! With marks, the template itself shows the assistant's text (`{% generation %}`). Without marks, each turn is found in the
//! rendered conversation (`find_turn`), where the template may write it differently than as the last turn. In both cases the text
//! of a learnt message must be in the learnt part (`check_learnt`).

use std::ops::Range;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::check_learnt;
use super::options::{AssistantMask, SftOptions};
use super::rendered::{MOST_WORK, RenderWork, RenderedConversation, TurnFinder};
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// A learnt message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub index: usize,
    pub weight: f32,
}

/// A range of learnt tokens.
#[derive(Debug)]
pub(super) struct Span {
    pub tokens: Range<usize>,
    pub weight: f32,
}

/// A rendered conversation, its learnt tokens, and notes for warnings.
pub(super) struct LearntTurns {
    pub full: RenderedConversation,
    pub spans: Vec<Span>,
    pub notes: Vec<&'static str>,
}

const NO_STOP: &str = "are trained on a turn without the token that ends it, which is outside of the chat template's {% generation %} \
                       marks: the model may not learn to stop";

/// Finds turns by the template's marks.
///
/// # Errors
/// If the template has no marks, the marks cannot be assigned to messages of different weights, or the template does not write a
/// message.
pub(super) fn by_marks(
    messages: &[Value],
    turns: &[Turn],
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
) -> Result<LearntTurns> {
    let Some(marked) = tokenizer.apply_marked_chat_template(&messages.to_vec().into(), variables)? else {
        bail!(
            "data.assistant_mask=generation_tags, but the chat template has no {{% generation %}} marks; set \
             data.assistant_mask=auto, or add marks to the template (model.custom_chat_template)"
        );
    };
    let same = turns.iter().all(|turn| turn.weight == turns[0].weight);
    ensure!(
        same || marked.spans.len() == turns.len(),
        "the messages have different weights, but the chat template marks {} parts for {} messages of the assistant, so they \
         cannot be assigned; set data.assistant_mask=prefix",
        marked.spans.len(),
        turns.len()
    );
    let weight = |i: usize| if same { turns[0].weight } else { turns[i].weight };
    let learnt: String = marked.spans.iter().map(|bytes| &marked.text[bytes.clone()]).collect();
    let (full, mut spans, mut notes) = (RenderedConversation::encode(marked.text, tokenizer)?, Vec::new(), Vec::new());
    for (i, bytes) in marked.spans.into_iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
        let span = Span { tokens: full.tokens(bytes), weight: weight(i) };
        let stops = full.ids[span.tokens.clone()].iter().any(|id| tokenizer.is_special(*id));
        notes.extend((!stops && span.weight != 0.0).then_some(NO_STOP));
        spans.push(span);
    }
    let work = RenderWork::at_most(MOST_WORK);
    let finder = TurnFinder { messages, tokenizer, variables, full, keeps_thoughts: true, work };
    for turn in turns.iter().filter(|turn| turn.weight != 0.0) {
        let note = check_learnt::check(&finder, turn.index, &learnt);
        finder.work.check(messages.len())?;
        notes.extend(note?);
    }
    Ok(LearntTurns { full: finder.full, spans, notes })
}

/// Finds turns in the rendered conversation, as far as `data.max_length` keeps them. Each turn takes renderings of all messages
/// before it, at most [`MOST_WORK`] together.
///
/// # Errors
/// If a turn cannot be found, no special token ends it, or the conversation takes too much work.
pub(super) fn in_conversation(
    messages: &[Value],
    turns: &[Turn],
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
    options: &SftOptions,
) -> Result<LearntTurns> {
    let text = tokenizer.apply_chat_template(&messages.to_vec().into(), false, variables)?;
    let full = RenderedConversation::encode(text, tokenizer)?;
    let kept = options.kept(full.ids.len());
    let keeps_thoughts = options.assistant_mask != AssistantMask::Prefix;
    let work = RenderWork::at_most(MOST_WORK);
    let finder = TurnFinder { messages, tokenizer, variables, full, keeps_thoughts, work };
    let (mut spans, mut notes) = (Vec::new(), Vec::new());
    let learnt: Vec<&Turn> = turns.iter().filter(|turn| turn.weight != 0.0).collect();
    // The search begins at the end that is kept, and ends with the first turn outside of it.
    let from_end: &mut dyn Iterator<Item = &Turn> =
        if kept.start > 0 { &mut learnt.into_iter().rev() } else { &mut learnt.into_iter() };
    for turn in from_end.take_while(|_| !kept.is_empty()) {
        let found = finder.find(turn.index);
        // A probe has no position both where the template does not write a text and where the work is used up.
        finder.work.check(messages.len())?;
        let bytes = found?;
        let tokens = finder.full.tokens(bytes.clone());
        if tokens.start >= kept.end || tokens.end <= kept.start {
            break;
        }
        let note = check_learnt::check(&finder, turn.index, &finder.full.text[bytes.clone()]);
        finder.work.check(messages.len())?;
        notes.extend(note?);
        spans.push(Span { tokens, weight: turn.weight });
    }
    Ok(LearntTurns { full: finder.full, spans, notes })
}
