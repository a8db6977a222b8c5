//! Supervised examples: rows of a prompt and its response, or of a conversation, as token ids of which some are learnt.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::content;
use super::examples::{Document, SftExample};
use super::media;
use super::messages;
use super::missing::{MESSAGES_KEY, with_remedies};
use super::prompts::Truncation;
use super::rows::{MEDIA_COLUMNS, Row, Rows};
use super::template_variables::TemplateVariables;
use super::tokenizer::Tokenizer;

/// The options for turning rows into examples: the `data` section of the configuration.
#[derive(Clone, Debug)]
pub struct SftOptions {
    pub columns: SftColumns,
    /// The largest number of tokens of a whole example.
    pub max_length: usize,
    /// The treatment of longer examples: error, left or right.
    pub truncation: Truncation,
    /// Further variables of the chat template.
    pub chat_kwargs: TemplateVariables,
}

/// The columns that hold an example.
#[derive(Clone, Debug)]
pub enum SftColumns {
    /// A prompt and its response (verl's SFTDataset).
    Response {
        /// The column of a list of messages, or of text, which becomes one user message.
        prompt_key: String,
        /// The keys followed inside the prompt column, outermost first; empty where the column itself is the prompt.
        prompt_dict_keys: Vec<String>,
        /// The column of the response, which is text.
        response_key: String,
        response_dict_keys: Vec<String>,
    },
    /// A conversation (verl's MultiTurnSFTDataset).
    Messages {
        /// The column of a list of messages.
        messages_key: String,
        /// The column of the tools that the chat template describes; it may be missing, or null in a row.
        tools_key: String,
        /// The column of the chat template's `enable_thinking`; it may be missing, or null in a row.
        enable_thinking_key: String,
    },
}

/// Reads `files` in order. A row whose response is cut away entirely is left out, with one warning for all.
pub fn load_sft(files: &[PathBuf], tokenizer: &Tokenizer, options: &SftOptions) -> Result<Vec<SftExample>> {
    if options.truncation == Truncation::Middle {
        bail!("truncation=middle is for prompts only; supervised examples take error, left or right");
    }
    let rows = match &options.columns {
        SftColumns::Response { prompt_key, response_key, .. } => {
            let settings = [("data.prompt_key", prompt_key.as_str()), ("data.response_key", response_key), (MESSAGES_KEY, "")];
            let rows = Rows::read(files, &[prompt_key, response_key], MEDIA_COLUMNS);
            rows.map_err(|error| with_remedies(error, &settings))?
        }
        SftColumns::Messages { messages_key, tools_key, enable_thinking_key } => {
            let optional = [&[tools_key.as_str(), enable_thinking_key], MEDIA_COLUMNS].concat();
            let rows = Rows::read(files, &[messages_key], &optional);
            rows.map_err(|error| with_remedies(error, &[(MESSAGES_KEY, messages_key)]))?
        }
    };
    if rows.is_empty() {
        bail!("no rows");
    }
    let (of, with) = (options.clone(), tokenizer.clone());
    let mut examples = rows.each(move |_, row| read_example(&row, &with, &of))?;
    examples.retain(Document::learns);
    if examples.is_empty() {
        bail!("no examples: none of {} rows has a response within {} tokens", rows.len(), options.max_length);
    }
    if examples.len() < rows.len() {
        let dropped = rows.len() - examples.len();
        tracing::warn!("left out {dropped} of {} examples: truncation removed their responses", rows.len());
    }
    Ok(examples.into_iter().map(SftExample::of).collect())
}

fn read_example(row: &Row, tokenizer: &Tokenizer, options: &SftOptions) -> Result<Document> {
    media::refuse(row)?;
    let Document { ids, weights } = match &options.columns {
        SftColumns::Response { prompt_key, prompt_dict_keys, response_key, response_dict_keys } => {
            let prompt = follow(row, prompt_key, prompt_dict_keys, "data.prompt_dict_keys")?;
            let messages = match prompt {
                Value::String(text) => {
                    content::refuse_written_messages(text).with_context(|| format!("column \"{prompt_key}\""))?;
                    json!([{"role": "user", "content": text}])
                }
                messages @ Value::Array(_) => messages.clone(),
                _ => bail!("column \"{prompt_key}\" must be a list of messages or text"),
            };
            let response = follow(row, response_key, response_dict_keys, "data.response_dict_keys")?;
            let response = response.as_str().with_context(|| format!("column \"{response_key}\" must be text"))?;
            content::refuse_written_messages(response).with_context(|| format!("column \"{response_key}\""))?;
            respond(&messages, response, tokenizer, &options.chat_kwargs)?
        }
        SftColumns::Messages { messages_key, tools_key, enable_thinking_key } => {
            let mut kwargs = options.chat_kwargs.clone();
            for (name, key, fits, kind) in [
                ("tools", tools_key, Value::is_array as fn(&Value) -> bool, "a list, also as JSON text"),
                ("enable_thinking", enable_thinking_key, Value::is_boolean, "true or false"),
            ] {
                let Some(value) = row.values.get(key).filter(|value| !value.is_null()) else { continue };
                // Tools are often stored as JSON text, because their schemas have many shapes; TRL reads them in this form too.
                let written = value.as_str().filter(|_| name == "tools").and_then(|text| serde_json::from_str(text).ok());
                let value = written.unwrap_or_else(|| value.clone());
                if value.is_null() {
                    continue;
                }
                if !fits(&value) {
                    bail!("column \"{key}\" must be {kind}, or null");
                }
                if name == "tools" && value.as_array().is_some_and(|tools| !tools.iter().all(Value::is_object)) {
                    bail!(
                        "column \"{key}\" must be a list of objects, the JSON schemas of tools; text within the list is not read"
                    );
                }
                kwargs.insert(name.to_owned(), value);
            }
            let messages = row.column(messages_key)?;
            if let Value::String(text) = messages {
                content::refuse_written_messages(text).with_context(|| format!("column \"{messages_key}\""))?;
            }
            messages::tokenize(messages, tokenizer, &kwargs).with_context(|| format!("column \"{messages_key}\""))?
        }
    };
    let (length, max) = (ids.len(), options.max_length);
    let too_long = || {
        anyhow!(
            "the example has {length} tokens, more than data.max_length={max}; raise it, or shorten such rows with \
             data.truncation=left or right"
        )
    };
    Ok(Document {
        ids: options.truncation.apply(&ids, max).ok_or_else(too_long)?,
        weights: options.truncation.apply(&weights, max).ok_or_else(too_long)?,
    })
}

/// Renders a prompt with the chat template and appends the response and the end of text, which alone are learnt.
fn respond(messages: &Value, response: &str, tokenizer: &Tokenizer, chat_kwargs: &TemplateVariables) -> Result<Document> {
    let mut ids = tokenizer.encode(&tokenizer.apply_chat_template(messages, true, chat_kwargs)?)?;
    let mut weights = vec![0.0; ids.len()];
    ids.extend(tokenizer.encode(response)?);
    ids.push(tokenizer.eos_id());
    weights.resize(ids.len(), 1.0);
    Ok(Document { ids, weights })
}

/// Returns the value that these keys lead to inside a column. `setting` names the setting they come from.
fn follow<'a>(row: &'a Row, column: &str, keys: &[String], setting: &str) -> Result<&'a Value> {
    keys.iter().try_fold(row.column(column)?, |value, key| {
        let Some(fields) = value.as_object() else {
            bail!(
                "column \"{column}\" has no field \"{key}\": it is no struct; where the column is itself what is wanted, set \
                 {setting}=null"
            );
        };
        fields.get(key).with_context(|| {
            let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
            names.sort_unstable();
            format!("column \"{column}\" has no field \"{key}\"; its fields: {}; see {setting}", names.join(", "))
        })
    })
}
