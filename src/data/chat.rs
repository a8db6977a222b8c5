//! Chat templates: a conversation becomes text, by the Jinja template that a model brings along.

use std::sync::{LazyLock, Once};

use anyhow::{Context, Result, bail};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value};
use regex::Regex;
use serde_json::Map;

use super::template_functions::{raise_exception, strftime_now, tojson};

/// Used when a tokenizer has no chat template: the contents of the messages, each followed by a newline.
pub const DEFAULT_TEMPLATE: &str = "{% for message in messages %}{{ message['content'] ~ '\\n' }}{% endfor %}";

/// Instructions after which a template is stopped; real ones take some thousands.
const FUEL: u64 = 5_000_000;

const NAME: &str = "chat_template";

/// A compiled template with the special tokens it may name.
pub struct ChatTemplate {
    environment: Environment<'static>,
    special_tokens: Map<String, serde_json::Value>,
    is_default: bool,
    warned: Once,
}

impl ChatTemplate {
    /// `source`: Jinja as transformers renders it, or `None` for [`DEFAULT_TEMPLATE`]. `special_tokens`: `bos_token`,
    /// `eos_token` … and their texts.
    pub fn new(source: Option<&str>, special_tokens: Map<String, serde_json::Value>) -> Result<Self> {
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        environment.add_filter("tojson", tojson);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        let text = without_generation_tags(source.unwrap_or(DEFAULT_TEMPLATE));
        environment.add_template_owned(NAME, text).context("the chat template is not valid Jinja")?;
        Ok(Self { environment, special_tokens, is_default: source.is_none(), warned: Once::new() })
    }

    /// The text of `messages` (a list of `{"role", "content"}`). `kwargs` are further variables of the template, such as
    /// `enable_thinking`.
    pub fn render(
        &self,
        messages: &serde_json::Value,
        add_generation_prompt: bool,
        kwargs: &Map<String, serde_json::Value>,
    ) -> Result<String> {
        check_messages(messages)?;
        if self.is_default {
            self.warned.call_once(|| {
                tracing::warn!(
                    "the tokenizer has no chat template: message contents are joined, each followed by a newline; \
                     put a chat_template.jinja beside tokenizer.json to change that"
                );
            });
        }
        let fixed = [("messages", to_template(messages)), ("add_generation_prompt", add_generation_prompt.into())];
        let more = self.special_tokens.iter().chain(kwargs).map(|(name, value)| (name.as_str(), to_template(value)));
        let context = Value::from_pairs(fixed.into_iter().chain(more));
        self.environment.get_template(NAME)?.render(context).context("the chat template failed")
    }
}

fn check_messages(messages: &serde_json::Value) -> Result<()> {
    let Some(messages) = messages.as_array().filter(|list| !list.is_empty()) else {
        bail!("a conversation must be a list of at least one message");
    };
    for (i, message) in messages.iter().enumerate() {
        if !message.get("role").is_some_and(|role| role.is_string()) || message.get("content").is_none() {
            bail!("message {i} of the conversation must have \"role\" (text) and \"content\"");
        }
    }
    Ok(())
}

/// transformers marks the assistant's text with `{% generation %}`; the marks print nothing. An `if` in their place keeps
/// the nesting and the whitespace control of the tags.
fn without_generation_tags(source: &str) -> String {
    static TAG: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}").expect("a constant pattern"));
    let replace = |tag: &regex::Captures| {
        let word = if tag.get(2).is_some() { "endif" } else { "if true" };
        format!("{{%{} {word} {}%}}", &tag[1], &tag[3])
    };
    TAG.replace_all(source, replace).into_owned()
}

fn to_template(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Value::from(i),
            (None, Some(u)) => Value::from(u),
            (None, None) => Value::from(n.as_f64()),
        },
        serde_json::Value::String(s) => Value::from(s),
        serde_json::Value::Array(items) => items.iter().map(to_template).collect(),
        serde_json::Value::Object(map) => Value::from_pairs(map.iter().map(|(k, v)| (k, to_template(v)))),
    }
}
