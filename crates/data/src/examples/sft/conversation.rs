//! Reads rows of conversations.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::learnt_turns::{self, LearntTurns, Turn};
use super::options::{AssistantMask, LossMask, SftOptions};
use super::rendered::RenderedConversation;
use super::tokens::SftTokens;
use crate::examples::document::Document;
use crate::files::conversations::WrittenConversation;
use crate::template::content;
use crate::template::coverage::{WEIGHTS, fit_to_template};
use crate::template::roles::from_sharegpt;
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// Reads a list of messages, also in ShareGPT's form.
pub(super) fn listed(messages: &Value) -> Result<Vec<Value>> {
    if let Value::String(text) = messages {
        content::refuse_written_messages(text)?;
    }
    let list = messages.as_array().context("a conversation must be a list of messages")?;
    Ok(list.iter().map(from_sharegpt).collect())
}

/// Reads a conversation.
pub(super) fn column(
    list: Vec<Value>,
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
    options: &SftOptions,
) -> Result<SftTokens> {
    if options.loss_mask == LossMask::ALL {
        let list = fit_to_template(unweighted(list, "data.loss_mask=assistant")?, false, tokenizer, variables)?;
        let ids = tokenizer.encode(&tokenizer.apply_chat_template(&list.into(), false, variables)?)?;
        return Ok(SftTokens { document: Document { weights: vec![1.0; ids.len()], ids }, notes: Vec::new() });
    }
    let (list, weights) = weighted(list)?;
    let list = fit_to_template(list, false, tokenizer, variables)?;
    let learnt = assistant(list, &weights, 0, tokenizer, variables, options)?;
    Ok(learnt.tokens)
}

/// Reads a sampled conversation, with its tools unless the row has others. Only the sampled turns are learnt, not the assistant's
/// turns in the prompt.
pub(super) fn written(
    conversation: &WrittenConversation,
    tokenizer: &Tokenizer,
    mut variables: TemplateVariables,
    options: &SftOptions,
) -> Result<SftTokens> {
    let (prompt, completion) = conversation.parts()?;
    if completion.is_empty() {
        return Ok(SftTokens { document: Document { ids: Vec::new(), weights: Vec::new() }, notes: Vec::new() });
    }
    if !variables.has_tools() && !conversation.tools.is_empty() {
        variables.insert("tools".to_owned(), conversation.tools.clone().into());
    }
    if options.loss_mask == LossMask::ALL {
        return column([prompt, completion].concat(), tokenizer, &variables, options);
    }
    let sampled = SftOptions { loss_mask: LossMask { assistant: true, completion: true }, ..options.clone() };
    answer(prompt.to_vec(), completion.to_vec(), tokenizer, &variables, &sampled)
}

/// Reads the messages of a prompt and its answer. The assistant's text is learnt, in all messages or only in the answer.
pub(super) fn answer(
    prompt: Vec<Value>,
    answer: Vec<Value>,
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
    options: &SftOptions,
) -> Result<SftTokens> {
    let prompt_length = prompt.len();
    let (messages, weights) = weighted([prompt, answer].concat())?;
    let messages = fit_to_template(messages, false, tokenizer, variables)?;
    let prompt = messages[..prompt_length].to_vec();
    let skipped = if options.loss_mask.completion { prompt_length } else { 0 };
    let LearntConversation { mut tokens, full } = assistant(messages, &weights, skipped, tokenizer, variables, options)?;
    if options.loss_mask.completion {
        let rendered = tokenizer.apply_chat_template(&prompt.into(), true, variables)?;
        let same = rendered.bytes().zip(full.text.bytes()).take_while(|(a, b)| a == b).count();
        for (weight, bytes) in tokens.document.weights.iter_mut().zip(&full.bytes) {
            if bytes.end <= same {
                *weight = 0.0;
            }
        }
    }
    Ok(tokens)
}

/// A conversation in tokens, with the assistant's turns learnt.
struct LearntConversation {
    tokens: SftTokens,
    full: RenderedConversation,
}

/// Finds the learnt tokens. `skipped`: number of first messages that are not learnt, for templates without marks.
fn assistant(
    messages: Vec<Value>,
    weights: &[f32],
    skipped: usize,
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
    options: &SftOptions,
) -> Result<LearntConversation> {
    let roles = &options.loss_roles;
    let trained: Vec<Turn> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| roles.iter().any(|role| message["role"] == **role))
        .map(|(index, _)| Turn { index, weight: weights[index] })
        .collect();
    ensure!(!trained.is_empty(), "the conversation has no turn of the {}", roles.join(" or the "));
    let of_assistant = roles.iter().all(|role| role == "assistant");
    let by_marks = match options.assistant_mask {
        AssistantMask::Prefix => false,
        AssistantMask::Auto => of_assistant && tokenizer.marks(variables)?,
        AssistantMask::GenerationTags => true,
    };
    let LearntTurns { full, spans, mut notes } = match by_marks {
        true => learnt_turns::by_marks(&messages, &trained, tokenizer, variables)?,
        false => {
            let trained: Vec<Turn> = trained.into_iter().filter(|turn| turn.index >= skipped).collect();
            learnt_turns::in_conversation(&messages, &trained, tokenizer, variables, options)?
        }
    };
    let mut document = Document { weights: vec![0.0; full.ids.len()], ids: full.ids.clone() };
    for span in spans {
        document.weights[span.tokens].fill(span.weight);
    }
    notes.sort_unstable();
    notes.dedup();
    Ok(LearntConversation { tokens: SftTokens { document, notes }, full })
}

/// Removes weights of 1 from messages. `needs`: the setting that supports other weights.
///
/// # Errors
/// If a message has another weight.
pub(super) fn unweighted(messages: Vec<Value>, needs: &str) -> Result<Vec<Value>> {
    let (messages, weights) = weighted(messages)?;
    ensure!(
        weights.iter().all(|weight| *weight == 1.0),
        "a message has a loss weight ({}), which needs {needs}",
        WEIGHTS.join(", ")
    );
    Ok(messages)
}

/// Removes the weights from messages. A message's weight is the product of its fields [`WEIGHTS`], each a number, true (1) or
/// false (0).
fn weighted(mut messages: Vec<Value>) -> Result<(Vec<Value>, Vec<f32>)> {
    let weigh = |(i, message): (usize, &mut Value)| {
        let Some(fields) = message.as_object_mut() else { return Ok(1.0) };
        WEIGHTS.iter().try_fold(1.0, |product, name| {
            let weight = match fields.shift_remove(*name) {
                None | Some(Value::Null | Value::Bool(true)) => 1.0,
                Some(Value::Bool(false)) => 0.0,
                Some(value) => value.as_f64().filter(|weight| weight.is_finite() && *weight >= 0.0).with_context(|| {
                    format!("message {i}: \"{name}\" must be a number of at least 0, true or false, not {value}")
                })?,
            };
            Ok(product * weight as f32)
        })
    };
    let weights = messages.iter_mut().enumerate().map(weigh).collect::<Result<_>>()?;
    Ok((messages, weights))
}
