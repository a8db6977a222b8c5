//! Helpers that look up functions in the schemas of tools (OpenAI's form).

use serde_json::Value;

/// Returns the names of the functions, in order.
pub(super) fn names(tools: &[Value]) -> impl Iterator<Item = &str> {
    functions(tools).filter_map(|function| function["name"].as_str())
}

/// Returns the functions, in order.
pub(super) fn functions(tools: &[Value]) -> impl Iterator<Item = &Value> {
    tools.iter().filter(|tool| tool["type"] == "function").map(|tool| &tool["function"])
}

/// Returns the schema of a function's parameter.
pub(super) fn parameter<'a>(tools: &'a [Value], function: &str, name: &str) -> Option<&'a Value> {
    functions(tools).find(|known| known["name"] == function)?["parameters"]["properties"].get(name)
}
