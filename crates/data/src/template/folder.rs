//! Finds the chat templates of a tokenizer folder, and selects the one for a conversation.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result, bail};
use serde_json::{Map, Value};

use super::chat::{ChatTemplate, MarkedText};
use super::content;
use super::date::TemplateDate;
use super::variables::TemplateVariables;
use crate::tokens::added_tokens::TOKENIZER_CONFIG;
use burnish_util::foreign;

/// File of the chat template, which takes precedence over tokenizer_config.json.
pub const CHAT_TEMPLATE: &str = "chat_template.jinja";

/// Folder of further chat templates, each called NAME.jinja.
pub(crate) const MORE_TEMPLATES: &str = "additional_chat_templates";

/// File in which image processors kept a template; tokenizers do not read it.
const OF_PROCESSOR: &str = "chat_template.json";

const DEFAULT: &str = "default";
/// Name of the template for conversations with tools.
const TOOL_USE: &str = "tool_use";

/// The chat templates of a tokenizer: one, or several with names.
#[derive(Clone)]
pub(crate) struct ChatTemplates {
    default: Option<Arc<ChatTemplate>>,
    tool_use: Option<Arc<ChatTemplate>>,
    /// Names of all templates, including unused ones.
    names: Vec<String>,
}

impl ChatTemplates {
    /// Compiles a single template, which replaces all others.
    pub(crate) fn one(source: Option<&str>, tokens: Map<String, Value>) -> Result<Self> {
        Ok(Self { default: Some(ChatTemplate::new(source, tokens)?.into()), tool_use: None, names: vec![DEFAULT.to_owned()] })
    }

    /// Reads the templates of a folder as transformers does: the files [`CHAT_TEMPLATE`] (the default) and [`MORE_TEMPLATES`];
    /// without these, one text or named texts in tokenizer_config.json (`config`).
    ///
    /// # Errors
    /// If a file cannot be read, or a template is not valid Jinja.
    pub(crate) fn read(folder: &Path, config: &Map<String, Value>, tokens: &Map<String, Value>) -> Result<Self> {
        let mut sources = BTreeMap::new();
        for (name, path) in template_files(folder)? {
            sources.insert(name, (foreign::read_text(&path, foreign::SETTINGS)?, path));
        }
        if sources.is_empty() {
            let path = folder.join(TOKENIZER_CONFIG);
            let named = in_config(config).with_context(|| {
                format!("{}: chat_template must be text, a list of named templates or an object of them", path.display())
            })?;
            sources = named.into_iter().map(|(name, source)| (name, (source, path.clone()))).collect();
        }
        if sources.is_empty() {
            if folder.join(OF_PROCESSOR).is_file() {
                tracing::warn!(
                    "{}: {OF_PROCESSOR} belongs to a processor and tokenizers do not read it; put its template into {CHAT_TEMPLATE}",
                    folder.display()
                );
            }
            return Self::one(None, tokens.clone());
        }
        let compiled = |name: &str| {
            let compile = |(source, path): &(String, PathBuf)| {
                let template = ChatTemplate::new(Some(source), tokens.clone());
                let place = path.display().to_string();
                let template = template.with_context(|| format!("{place}: the chat template \"{name}\""))?;
                Ok::<_, Error>(Arc::new(template.read_from(&place)))
            };
            sources.get(name).map(compile).transpose()
        };
        Ok(Self { default: compiled(DEFAULT)?, tool_use: compiled(TOOL_USE)?, names: sources.keys().cloned().collect() })
    }

    /// Returns true if the tokenizer has a template for conversations without tools.
    pub(crate) fn has_any(&self) -> bool {
        self.default.as_ref().is_some_and(|template| !template.is_default())
    }

    /// Returns the templates with another date.
    pub(crate) fn with_date(self, date: &TemplateDate) -> Self {
        self.map(|template| template.with_date(date.clone()))
    }

    /// Returns the templates for the texts of many clients, see [`ChatTemplate::for_requests`].
    pub(crate) fn for_requests(self) -> Self {
        self.map(ChatTemplate::for_requests)
    }

    fn map(self, change: impl Fn(&ChatTemplate) -> ChatTemplate) -> Self {
        let set = |template: Option<Arc<ChatTemplate>>| template.map(|template| change(&template).into());
        Self { default: set(self.default), tool_use: set(self.tool_use), names: self.names }
    }

    /// Renders a conversation as text; see [`ChatTemplate::render`]. Content parts are passed on unchanged if the template writes
    /// their texts, otherwise joined to one text.
    ///
    /// # Errors
    /// If it is not a conversation of text, several templates have no default, or the template fails.
    pub(crate) fn render(
        &self,
        conversation: &Value,
        add_generation_prompt: bool,
        variables: &TemplateVariables,
    ) -> Result<String> {
        let template = self.choose(variables.has_tools())?;
        let messages = fitted(template, conversation, add_generation_prompt, variables)?;
        template.render(&messages, add_generation_prompt, variables)
    }

    /// Renders a conversation and finds the assistant's text by marks; see [`ChatTemplate::render_marked`].
    ///
    /// # Errors
    /// The errors of [`Self::render`], and marks that cannot be found.
    pub(crate) fn render_marked(&self, conversation: &Value, variables: &TemplateVariables) -> Result<Option<MarkedText>> {
        let template = self.choose(variables.has_tools())?;
        template.render_marked(&fitted(template, conversation, false, variables)?, variables)
    }

    /// Returns true if the template for conversations (with tools if `tools`) marks the assistant's text.
    pub(crate) fn marks(&self, tools: bool) -> Result<bool> {
        Ok(self.choose(tools)?.marks())
    }

    /// Returns true if the source of a template contains this text.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.default.iter().chain(&self.tool_use).any(|template| template.has(text))
    }

    fn choose(&self, tools: bool) -> Result<&ChatTemplate> {
        let Some(template) = self.tool_use.as_ref().filter(|_| tools).or(self.default.as_ref()) else {
            bail!(
                "the tokenizer has named chat templates ({}), but not \"{DEFAULT}\": rename one, or put it into {CHAT_TEMPLATE}",
                self.names.join(", ")
            );
        };
        Ok(template)
    }
}

/// Returns the messages with contents in a form that the template writes.
fn fitted(
    template: &ChatTemplate,
    conversation: &Value,
    add_generation_prompt: bool,
    variables: &TemplateVariables,
) -> Result<Value> {
    let messages = content::messages(conversation)?;
    if messages.iter().all(|message| content::parts(message).is_none()) {
        return Ok(messages.into());
    }
    let render = |messages: Vec<Value>| template.render(&messages.into(), add_generation_prompt, variables);
    let (marked, marks) = content::marked(&messages);
    // Some templates write parts except in the system message.
    let joins: [fn(&Value) -> bool; 3] = [|_| false, |message| message["role"] == "system", |_| true];
    let attempt = |joins: fn(&Value) -> bool| {
        render(marked.iter().map(|m| if joins(m) { content::joined(m) } else { m.clone() }).collect())
            .ok()
            .map(|text| (joins, text))
    };
    let (joins, written) = joins.into_iter().find_map(attempt).unwrap_or((joins[2], String::new()));
    let (printed, quoted) = content::marks_in(&written);
    // If the list is printed with quotes, the template printed the list of parts itself.
    let is_written = |marks: &[String]| marks.iter().all(|mark| printed.contains(&**mark) && !quoted.contains(&**mark));
    let as_text = render(marked.iter().map(content::joined).collect()).unwrap_or_default();
    let (joined, _) = content::marks_in(&as_text);
    let is_text = |marks: &[String]| marks.iter().all(|mark| joined.contains(&**mark));
    // If the template changes the texts so that neither form is found, parts are passed as in transformers.
    let fitting = |(message, marks): (&Value, &Vec<String>)| match joins(message) || !is_written(marks) && is_text(marks) {
        true => content::joined(message),
        false => message.clone(),
    };
    Ok(messages.iter().zip(&marks).map(fitting).collect())
}

/// Returns the template files of a folder by name, sorted.
pub(crate) fn template_files(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    let more = folder.join(MORE_TEMPLATES);
    if more.is_dir() {
        for entry in fs::read_dir(&more).with_context(|| format!("cannot read {}", more.display()))? {
            let path = entry.with_context(|| format!("cannot read {}", more.display()))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jinja"));
            let Some(name) = name.filter(|_| !path.is_dir()) else { continue };
            if foreign::is_there(&path)? {
                files.push((name.to_owned(), path.clone()));
            }
        }
    }
    let main = folder.join(CHAT_TEMPLATE);
    if foreign::is_there(&main)? && files.iter().all(|(name, _)| name != DEFAULT) {
        files.push((DEFAULT.to_owned(), main));
    }
    files.sort();
    Ok(files)
}

/// Returns the templates of tokenizer_config.json; empty if missing, `None` if malformed.
fn in_config(config: &Map<String, Value>) -> Option<BTreeMap<String, String>> {
    let text = |name: &str, source: &Value| Some((name.to_owned(), source.as_str()?.to_owned()));
    match config.get("chat_template") {
        None | Some(Value::Null) => Some(BTreeMap::new()),
        Some(Value::Array(named)) => named.iter().map(|entry| text(entry["name"].as_str()?, &entry["template"])).collect(),
        Some(Value::Object(named)) => named.iter().map(|(name, source)| text(name, source)).collect(),
        Some(source) => Some(BTreeMap::from([text(DEFAULT, source)?])),
    }
}
