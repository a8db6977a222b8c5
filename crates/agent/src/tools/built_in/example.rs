//! `reverse`: returns a text backwards.

use std::time::Duration;

use serde_json::{Value, json};

use super::tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};

pub(super) static REVERSE: BuiltInKind = BuiltInKind {
    name: "reverse",
    class_names: &["burnish.tools.Reverse"],
    doc: "returns a text backwards",
    settings: &[],
    schema: || {
        json!({"type": "function", "function": {
            "name": "reverse",
            "description": "Returns a text backwards.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        }})
    },
    make: |_| Ok(Box::new(Reverse)),
};

struct Reverse;

impl BuiltInTool for Reverse {
    fn call(&self, arguments: &Value, _state: &mut Value, _timeout: Duration) -> Result<ToolOutput, ToolError> {
        let text = arguments["text"].as_str().ok_or_else(|| ToolError::raised("`text` must be a string"))?;
        Ok(ToolOutput::text(text.chars().rev().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_reversed() {
        let tool = (REVERSE.make)(&json!({})).unwrap();
        let call = |arguments: Value| tool.call(&arguments, &mut Value::Null, Duration::ZERO);
        assert_eq!(call(json!({"text": "abc"})).unwrap().text, "cba");
        assert!(call(json!({})).is_err());
    }
}
