//! Prompts of a teacher that is shown more than the policy, such as a demonstration (self-distillation).

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::prompts::Prompt;
use crate::template::content;
use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// The place of the context in the teacher's prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextPlace {
    /// In the last message of the user, which the template replaces (TRL's `SDFTTrainer`).
    User,
    /// In a system message before the whole conversation (prime-rl's `opsd`).
    System,
}

/// The form of a teacher's prompts.
#[derive(Clone, Debug)]
pub struct TeacherPromptForm {
    /// Column of the row, or key of its `extra_info`.
    pub key: String,
    /// Text with the placeholders `{prompt}` and `{privileged_context}`.
    pub template: String,
    pub place: ContextPlace,
    /// Further variables of the chat template.
    pub chat_kwargs: TemplateVariables,
}

impl TeacherPromptForm {
    /// Returns the token ids that the teacher reads in place of the prompt's.
    ///
    /// # Errors
    /// If the row has no context, if the prompt does not end with a message of the user, or if the chat template fails.
    pub fn ids(&self, prompt: &Prompt, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        self.ids_of(prompt, tokenizer).with_context(|| prompt.place())
    }

    fn ids_of(&self, prompt: &Prompt, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        let key = &self.key;
        let context = prompt.columns.get(key).filter(|value| !value.is_null()).or_else(|| prompt.extra_info.get(key));
        let context = context.with_context(|| {
            format!("the row has neither a column \"{key}\" nor extra_info.{key} (distillation.privileged_context_key)")
        })?;
        match (self.place, prompt.conversational) {
            (ContextPlace::User, true) => {
                let messages = with_context(&prompt.messages, context, &self.template)?;
                tokenizer.encode(&tokenizer.apply_chat_template(&messages, true, &self.chat_kwargs)?)
            }
            (ContextPlace::User, false) => {
                let text = with_context(&prompt.messages[0]["content"], context, &self.template)?;
                tokenizer.encode_plain(text.as_str().unwrap_or_default())
            }
            (ContextPlace::System, conversational) => {
                let hint = shown(&self.template, "", &text_of(context)?);
                let hint = match conversational {
                    true => {
                        let message = json!([{"role": "system", "content": hint}]);
                        tokenizer.encode(&tokenizer.apply_chat_template(&message, false, &self.chat_kwargs)?)?
                    }
                    false => tokenizer.encode_plain(&hint)?,
                };
                Ok([hint, prompt.ids.clone()].concat())
            }
        }
    }
}

/// The form of the prompts of SDPO's teacher.
#[derive(Clone, Debug)]
pub struct RepromptForm {
    /// Text with the placeholders `{prompt}`, `{solution}`, `{feedback}`.
    pub reprompt_template: String,
    /// Text with the placeholder `{successful_previous_attempt}`.
    pub solution_template: String,
    /// Text with the placeholder `{feedback_raw}`.
    pub feedback_template: String,
    /// True to remove `<think>…</think>` from demonstrations.
    pub remove_thinking: bool,
    /// Largest number of tokens; more are cut off on the left.
    pub max_length: usize,
    /// Further variables of the chat template.
    pub chat_kwargs: TemplateVariables,
}

impl RepromptForm {
    /// Returns the token ids that the teacher reads in place of the prompt's.
    ///
    /// # Errors
    /// If the prompt does not end with a message of the user, or the chat template fails.
    pub fn ids(
        &self,
        prompt: &Prompt,
        solution: Option<&str>,
        feedback: Option<&str>,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<u32>> {
        let ids = || match prompt.conversational {
            true => {
                let messages = self.prompt(&prompt.messages, solution, feedback)?;
                tokenizer.encode(&tokenizer.apply_chat_template(&messages, true, &self.chat_kwargs)?)
            }
            false => {
                let text = self.prompt(&prompt.messages[0]["content"], solution, feedback)?;
                tokenizer.encode_plain(text.as_str().unwrap_or_default())
            }
        };
        let ids = ids().with_context(|| prompt.place())?;
        Ok(ids[ids.len().saturating_sub(self.max_length)..].to_vec())
    }

    /// Returns a prompt, text or messages, with the filled template in place of the text or of the last message.
    ///
    /// # Errors
    /// If the last message is not the user's.
    pub fn prompt(&self, prompt: &Value, solution: Option<&str>, feedback: Option<&str>) -> Result<Value> {
        let solution = solution.map(|text| if self.remove_thinking { without_thinking(text) } else { text.to_owned() });
        let solution = solution.map(|text| filled(&self.solution_template, &[("{successful_previous_attempt}", &text)]));
        let feedback = feedback.map(|text| filled(&self.feedback_template, &[("{feedback_raw}", text)]));
        let (solution, feedback) = (solution.unwrap_or_default(), feedback.unwrap_or_default());
        in_last_message(prompt, |text| {
            filled(&self.reprompt_template, &[("{prompt}", text), ("{solution}", &solution), ("{feedback}", &feedback)])
        })
    }
}

/// Removes every `<think>…</think>`, and the space around the remaining text.
fn without_thinking(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, from)) = rest.split_once("<think>") {
        let Some((_, after)) = from.split_once("</think>") else { break };
        kept.push_str(before);
        rest = after;
    }
    (kept + rest).trim().to_owned()
}

/// Returns a prompt, text or messages, with the filled template in place of the text or of the last message, which is the user's.
///
/// # Errors
/// If there is no context, or the last message is not the user's.
pub fn with_context(prompt: &Value, context: &Value, template: &str) -> Result<Value> {
    let context = text_of(context)?;
    in_last_message(prompt, |text| shown(template, text, &context))
}

/// Returns a prompt, text or messages, with its text or the text of the last message, which is the user's, replaced.
fn in_last_message(prompt: &Value, replaced: impl Fn(&str) -> String) -> Result<Value> {
    match prompt {
        Value::String(text) => Ok(replaced(text).into()),
        Value::Array(messages) => {
            let Some((last, before)) = messages.split_last().filter(|(last, _)| last["role"] == "user") else {
                bail!("the teacher's prompt replaces the last message, which is not of the user")
            };
            let text = content::joined(last)["content"].as_str().unwrap_or_default().to_owned();
            let mut last = last.clone();
            last["content"] = replaced(&text).into();
            Ok(before.iter().cloned().chain([last]).collect())
        }
        _ => bail!("a prompt is text or a list of messages"),
    }
}

/// Returns the text of a context: messages are joined by newlines.
fn text_of(context: &Value) -> Result<String> {
    ensure!(!context.is_null(), "the row has no context for the teacher (distillation.privileged_context_key)");
    Ok(match context {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => if *flag { "True" } else { "False" }.to_owned(),
        Value::Array(messages) => {
            let text = |message: &Value| match message {
                Value::Object(_) => content::joined(message)["content"].as_str().unwrap_or_default().to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            messages.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    })
}

/// Fills prompt and context into a template.
fn shown(template: &str, prompt: &str, context: &str) -> String {
    filled(template, &[("{prompt}", prompt), ("{privileged_context}", context), ("{demonstration}", context)])
}

/// Fills in placeholders; doubled braces become single ones.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let placeholders: Vec<(&str, &str)> = values.iter().copied().chain([("{{", "{"), ("}}", "}")]).collect();
    let (mut text, mut rest) = (String::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let (name, value) =
            placeholders.iter().copied().find(|(name, _)| from.starts_with(name)).unwrap_or((&from[..1], &from[..1]));
        text.push_str(value);
        rest = &from[name.len()..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_filled_in_again() {
        assert_eq!(
            shown("{prompt}\n\n{privileged_context} {{x}} {", "{privileged_context}", "d"),
            "{privileged_context}\n\nd {x} {"
        );
    }
}
