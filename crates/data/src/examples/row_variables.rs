//! A row's own variables for the chat template: tools, thinking and others.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::files::rows::Row;
use crate::template::variables::TemplateVariables;

/// Columns of a row's variables. Each may be missing, or null in a row.
#[derive(Clone, Debug)]
pub struct ChatColumns {
    /// Column of the tools to describe: a list of JSON schemas, also as JSON text.
    pub tools_key: String,
    /// Column of a mapping of additional template variables.
    pub chat_template_kwargs_key: String,
    /// Column of the template's `enable_thinking`; `None` if a stage has no such column.
    pub enable_thinking_key: Option<String>,
}

impl ChatColumns {
    /// Returns the names of the columns.
    pub fn names(&self) -> Vec<&str> {
        [&self.tools_key, &self.chat_template_kwargs_key]
            .into_iter()
            .chain(&self.enable_thinking_key)
            .map(String::as_str)
            .collect()
    }

    /// Returns the variables of all rows (`shared`), overridden by those of this row.
    pub(super) fn variables(&self, row: &Row, shared: &TemplateVariables) -> Result<TemplateVariables> {
        let mut variables = shared.clone();
        let value = |key: &str| row.values.get(key).filter(|value| !value.is_null());
        if let Some(written) = value(&self.tools_key) {
            let tools = tools(written, &self.tools_key)?;
            if !tools.is_null() {
                variables.insert("tools".to_owned(), tools);
            }
        }
        if let Some((key, written)) = self.enable_thinking_key.as_ref().and_then(|key| Some((key, value(key)?))) {
            if !written.is_boolean() {
                bail!("column \"{key}\" must be true or false, or null");
            }
            variables.insert("enable_thinking".to_owned(), written.clone());
        }
        match value(&self.chat_template_kwargs_key) {
            None => {}
            // A table gives every row every field, null if the row lacks it. A template must not see such nulls.
            Some(Value::Object(fields)) => {
                let set = fields.iter().filter(|(_, value)| !value.is_null());
                set.for_each(|(name, value)| variables.insert(name.clone(), value.clone()));
            }
            Some(_) => bail!("column \"{}\" must be a mapping of variables to values, or null", self.chat_template_kwargs_key),
        }
        Ok(variables)
    }
}

/// Reads tools. They are often stored as JSON text because schemas differ in shape; TRL reads this form too.
fn tools(written: &Value, key: &str) -> Result<Value> {
    let parsed = written.as_str().and_then(|text| serde_json::from_str(text).ok());
    let value: Value = parsed.unwrap_or_else(|| written.clone());
    match &value {
        Value::Null => {}
        Value::Array(tools) if tools.iter().all(Value::is_object) => {}
        Value::Array(_) => {
            bail!("column \"{key}\" must be a list of objects (JSON schemas of tools); text inside the list is not supported")
        }
        _ => bail!("column \"{key}\" must be a list, a list as JSON text, or null"),
    }
    Ok(value)
}
