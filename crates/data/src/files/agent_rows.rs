//! Agent settings of rows: the agent loop of a row, and the tools that its prompt describes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::rows::Row;
use burnish_util::python_tagged::is_missing;

/// Column of a row's agent loop, as in verl.
pub const AGENT_NAME: &str = "agent_name";

/// Key in `extra_info` that selects tools, as in verl.
const TOOL_SELECTION: &str = "tool_selection";

/// Agent settings that all rows share. By default, every response is one turn without tools.
#[derive(Clone, Debug, Default)]
pub struct AgentRows {
    /// Loop of rows that do not name one; empty in runs without agents.
    pub default: String,
    /// True if every row has the default loop and its own name is ignored.
    pub ignores_names: bool,
    /// Schemas of all tools (OpenAI's form), for each loop whose prompts describe tools.
    pub tools: BTreeMap<String, Vec<Value>>,
}

impl AgentRows {
    /// Returns the loop of a row.
    ///
    /// # Errors
    /// A name that is not text.
    pub fn agent(&self, row: &Row) -> Result<String> {
        match row.values.get(AGENT_NAME).filter(|name| !is_missing(name) && !self.ignores_names) {
            None => Ok(self.default.clone()),
            Some(Value::String(name)) => Ok(name.clone()),
            Some(other) => bail!("column \"{AGENT_NAME}\" must be the name of an agent loop, not {other}"),
        }
    }

    /// Returns the tools of a row with this loop: the tools in `tool_selection` of `extra_info`, or all. `None` for loops whose
    /// prompts do not describe tools.
    ///
    /// # Errors
    /// A selection that is not a list.
    pub fn tools(&self, agent: &str, extra_info: &Value) -> Result<Option<Vec<Value>>> {
        self.tools.get(agent).map(|tools| selected(tools, extra_info)).transpose()
    }
}

/// Returns the tools in `tool_selection` of a row's `extra_info`, or all. As in verl, unknown names are ignored.
///
/// # Errors
/// A selection that is not a list.
pub fn selected(tools: &[Value], extra_info: &Value) -> Result<Vec<Value>> {
    let selection = extra_info.get(TOOL_SELECTION).filter(|selection| !selection.is_null());
    let Some(selection) = selection else { return Ok(tools.to_vec()) };
    let names = selection.as_array().with_context(|| format!("extra_info.{TOOL_SELECTION} must be a list of tool names"))?;
    if names.is_empty() {
        return Ok(tools.to_vec());
    }
    Ok(tools.iter().filter(|tool| names.contains(&tool["function"]["name"])).cloned().collect())
}
