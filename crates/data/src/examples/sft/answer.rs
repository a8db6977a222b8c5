//! Reads rows of a prompt and its answer.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::options::{LossMask, SftOptions};
use super::tokens::SftTokens;
use super::{conversation, text};
use crate::examples::document::Document;
use crate::examples::prompt_boundary::{OTHER_PROMPT, TextForm, split};
use crate::examples::text_column::{self, TextOrMessages};
use crate::files::alpaca;
use crate::files::rows::Row;
use crate::template::content;
use crate::template::coverage::{fit_to_template, note_of_system, with_system};
use crate::template::roles::from_sharegpt;
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

const NO_HISTORY: &str = "have a column \"history\" that is not used, because their prompts are plain text";

/// Reads columns of a prompt and its answer, both text or both messages.
pub(super) fn completion(
    row: &Row,
    prompt_key: &str,
    completion_key: &str,
    tokenizer: &Tokenizer,
    options: &SftOptions,
) -> Result<SftTokens> {
    let mask = options.loss_mask;
    match (TextOrMessages::read(row, prompt_key)?, TextOrMessages::read(row, completion_key)?) {
        (TextOrMessages::Text(_), TextOrMessages::Text(_)) if mask.assistant => bail!(
            "data.loss_mask has `assistant`, but \"{prompt_key}\" and \"{completion_key}\" are text without roles; set \
             data.loss_mask=completion or all"
        ),
        (TextOrMessages::Text(prompt), TextOrMessages::Text(answer)) => {
            let prompt = alpaca::question(row, prompt_key, &prompt);
            let mut tokens = masked(tokenizer, TextForm::Plain, &prompt, &(prompt.clone() + &answer), mask)?;
            tokens.notes.extend(text::rendered(&tokens.document.ids, tokenizer));
            let history = alpaca::history(row, prompt_key)?;
            tokens.notes.extend(note_of_system(&row.values));
            tokens.notes.extend((!history.is_empty()).then_some(NO_HISTORY));
            Ok(tokens)
        }
        (TextOrMessages::Messages(prompt), TextOrMessages::Messages(answer)) => {
            let variables = options.chat.variables(row, &options.chat_kwargs)?;
            let prompt = with_system(&row.values, prompt)?;
            let is_only_model = answer.iter().all(|message| message["role"] == "assistant");
            if mask.assistant {
                return conversation::answer(prompt, answer, tokenizer, &variables, options);
            }
            if options.usual_mask && mask.completion && !is_only_model {
                let sampled = SftOptions { loss_mask: LossMask { assistant: true, ..mask }, ..options.clone() };
                return conversation::answer(prompt, answer, tokenizer, &variables, &sampled);
            }
            let unweighted = |key: &str, messages| {
                conversation::unweighted(messages, "data.loss_mask=[assistant,completion]")
                    .with_context(|| format!("column \"{key}\""))
            };
            let (prompt, answer) = (unweighted(prompt_key, prompt)?, unweighted(completion_key, answer)?);
            let prompt_length = prompt.len();
            let full = fit_to_template([prompt, answer].concat(), false, tokenizer, &variables)?;
            let render = |messages: &[Value], asks| tokenizer.apply_chat_template(&messages.into(), asks, &variables);
            masked(tokenizer, TextForm::Rendered, &render(&full[..prompt_length], true)?, &render(&full, false)?, mask)
        }
        (prompt, answer) => bail!(text_column::differing([(prompt_key, &prompt), (completion_key, &answer)].into_iter())),
    }
}

/// Returns the tokens of a prompt and its answer. Learns the answer, or everything, depending on `mask`.
fn masked(tokenizer: &Tokenizer, form: TextForm, prompt: &str, full: &str, mask: LossMask) -> Result<SftTokens> {
    if !mask.completion {
        let ids = form.encode_full(tokenizer, full)?;
        return Ok(SftTokens { document: Document { weights: vec![1.0; ids.len()], ids }, notes: Vec::new() });
    }
    let split = split(tokenizer, form, prompt, full)?;
    let notes = split.differs.then_some(OTHER_PROMPT).into_iter().collect();
    Ok(SftTokens { document: answered(split.prompt, &split.answer, 0.0), notes })
}

fn answered(mut ids: Vec<u32>, answer: &[u32], of_prompt: f32) -> Document {
    let mut weights = vec![of_prompt; ids.len()];
    ids.extend(answer);
    weights.resize(ids.len(), 1.0);
    Document { ids, weights }
}

/// Renders a prompt with the chat template, and appends the response and the end-of-text token.
pub(super) fn response(
    row: &Row,
    (prompt_key, prompt_keys): (&str, &[String]),
    (response_key, response_keys): (&str, &[String]),
    tokenizer: &Tokenizer,
    options: &SftOptions,
) -> Result<SftTokens> {
    let in_prompt = || format!("column \"{prompt_key}\"");
    let mut notes = Vec::new();
    let messages: Vec<Value> = match follow(row, prompt_key, prompt_keys, "data.prompt_dict_keys")? {
        Value::String(text) => {
            content::refuse_written_messages(text).with_context(in_prompt)?;
            let mut messages = alpaca::history(row, prompt_key)?;
            notes.extend((!messages.is_empty()).then_some(alpaca::HISTORY_NOT_LEARNT));
            messages.push(json!({"role": "user", "content": alpaca::question(row, prompt_key, text)}));
            messages
        }
        Value::Array(messages) => {
            let messages = messages.iter().map(from_sharegpt).collect();
            conversation::unweighted(messages, "rows that are conversations (data.messages_key)").with_context(in_prompt)?
        }
        _ => bail!("column \"{prompt_key}\" must be a list of messages or text"),
    };
    let messages = with_system(&row.values, messages).with_context(in_prompt)?;
    let response = follow(row, response_key, response_keys, "data.response_dict_keys")?;
    let response = response.as_str().with_context(|| format!("column \"{response_key}\" must be text"))?;
    content::refuse_written_messages(response).with_context(|| format!("column \"{response_key}\""))?;
    let variables: TemplateVariables = options.chat.variables(row, &options.chat_kwargs)?;
    let messages = fit_to_template(messages, true, tokenizer, &variables).with_context(in_prompt)?.into();
    let prompt = tokenizer.encode(&tokenizer.apply_chat_template(&messages, true, &variables)?)?;
    let answer = [tokenizer.encode(response)?, vec![tokenizer.eos_id()]].concat();
    let of_prompt = if options.loss_mask.completion { 0.0 } else { 1.0 };
    Ok(SftTokens { document: answered(prompt, &answer, of_prompt), notes })
}

/// Returns the value at the path `keys` inside a column. `setting` is the name of the setting that holds the path.
fn follow<'a>(row: &'a Row, column: &str, keys: &[String], setting: &str) -> Result<&'a Value> {
    keys.iter().try_fold(row.column(column)?, |value, key| {
        let Some(fields) = value.as_object() else {
            bail!(
                "column \"{column}\" has no field \"{key}\" because it is not a struct; to use the column itself, set {setting}=null"
            );
        };
        fields.get(key).with_context(|| {
            let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
            names.sort_unstable();
            format!("column \"{column}\" has no field \"{key}\"; its fields: {}; see {setting}", names.join(", "))
        })
    })
}
