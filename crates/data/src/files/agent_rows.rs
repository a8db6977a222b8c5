//! Rows for agents: the loop that a row's conversation runs in, and the tools that its prompt describes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::rows::Row;

/// The column that names the loop of a row, as in verl.
pub const AGENT_NAME: &str = "agent_name";

/// The names of rows' `extra_info` that concern agents, as in verl.
const TOOL_SELECTION: &str = "tool_selection";

/// What rows for agents have in common. By default every response is one turn, without tools.
#[derive(Clone, Debug, Default)]
pub struct AgentRows {
    /// The loop of rows that name none; empty for a run without agents.
    pub default: String,
    /// True if every row has the default loop, whatever it names.
    pub ignores_names: bool,
    /// For each loop in whose prompts tools are described, the schemas of all of them, in OpenAI's form.
    pub tools: BTreeMap<String, Vec<Value>>,
}

impl AgentRows {
    /// Returns the loop of a row.
    ///
    /// # Errors
    /// A name that is no text.
    pub fn agent(&self, row: &Row) -> Result<String> {
        match row.values.get(AGENT_NAME).filter(|name| !name.is_null() && !self.ignores_names) {
            None => Ok(self.default.clone()),
            Some(Value::String(name)) => Ok(name.clone()),
            Some(other) => bail!("column \"{AGENT_NAME}\" must be the name of an agent loop, not {other}"),
        }
    }

    /// Returns the tools of a row with this loop: those that `tool_selection` of its `extra_info` names, or all. `None` for loops
    /// whose prompts describe none.
    ///
    /// # Errors
    /// A selection that is no list.
    pub fn tools(&self, agent: &str, extra_info: &Value) -> Result<Option<Vec<Value>>> {
        self.tools.get(agent).map(|tools| selected(tools, extra_info)).transpose()
    }
}

/// Returns the tools that `tool_selection` of a row's `extra_info` names, or all. As in verl, names of tools that do not exist
/// are passed over.
///
/// # Errors
/// A selection that is no list of names.
pub fn selected(tools: &[Value], extra_info: &Value) -> Result<Vec<Value>> {
    let selection = extra_info.get(TOOL_SELECTION).filter(|selection| !selection.is_null());
    let Some(selection) = selection else { return Ok(tools.to_vec()) };
    let names = selection.as_array().with_context(|| format!("extra_info.{TOOL_SELECTION} must be a list of names of tools"))?;
    if names.is_empty() {
        return Ok(tools.to_vec());
    }
    Ok(tools.iter().filter(|tool| names.contains(&tool["function"]["name"])).cloned().collect())
}
