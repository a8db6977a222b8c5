//! Conversations as supervised examples: of every turn of the assistant, the text and the token that ends it are learnt.
//!
//! The whole conversation is rendered and tokenized once, as a model would see it. The beginning and the end of a turn are found
//! by rendering what comes before the turn, with the generation prompt, and what comes up to its end: the ids of both must be a
//! prefix of the whole. It is an error, rather than a mask that is a token off, if a template writes earlier turns differently
//! once others follow, or if the first token of a text merges with the template's.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::examples::Document;
use super::template_variables::TemplateVariables;
use super::tokenizer::Tokenizer;

/// Returns the ids of a conversation, and a mask of those that are learnt. `variables` are further ones of the chat template.
pub fn tokenize(messages: &Value, tokenizer: &Tokenizer, variables: &TemplateVariables) -> Result<Document> {
    let list = messages.as_array().context("a conversation must be a list of messages")?;
    let encode = |count: usize, add_generation_prompt: bool| {
        let part = Value::from(list[..count].to_vec());
        tokenizer.encode(&tokenizer.apply_chat_template(&part, add_generation_prompt, variables)?)
    };
    let ids = encode(list.len(), false)?;
    let mut weights = vec![0.0; ids.len()];
    let turns = list.iter().enumerate().filter(|(_, message)| message["role"] == "assistant").map(|(i, _)| i);
    for turn in turns {
        if turn == 0 {
            bail!("message 0 is the assistant's: a message that it answers must come first");
        }
        let (before, through) = (encode(turn, true)?, encode(turn + 1, false)?);
        if before.len() > through.len() || !ids.starts_with(&before) || !ids.starts_with(&through) {
            bail!(
                "message {turn}: the tokens of the conversation up to here are not the first ones of the whole conversation: the \
                 chat template writes a turn differently when others follow (as some do with <think>), or the text begins or ends \
                 with characters that merge with the template's; change the text, or the template (model.custom_chat_template)"
            );
        }
        // Text that the template writes after the end of the turn, such as a newline, is never generated.
        let Some(end) = (before.len()..through.len()).rev().find(|&i| tokenizer.is_special(ids[i])) else {
            bail!(
                "message {turn}: the chat template ends the assistant's turn with no special token, so a model could not learn to \
                 stop; give another template (model.custom_chat_template)"
            );
        };
        weights[before.len()..=end].fill(1.0);
    }
    if !weights.contains(&1.0) {
        bail!("the conversation has no turn of the assistant");
    }
    Ok(Document { ids, weights })
}
