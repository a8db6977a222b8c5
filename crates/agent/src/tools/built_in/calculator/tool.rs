//! The calculator as a tool.

use std::time::Duration;

use serde_json::{Value, json};

use super::expression::evaluate;
use crate::tools::built_in::tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};

pub(in crate::tools::built_in) static CALCULATOR: BuiltInKind = BuiltInKind {
    name: "calculator",
    class_names: &["burnish.Calculator"],
    doc: "the value of an expression of numbers, + - * / // % ** and parentheses: integers exactly, up to 10,000 digits, and decimals \
          as Python computes them",
    settings: &[],
    schema: || {
        json!({"type": "function", "function": {
            "name": "calculator",
            "description": "Computes an arithmetic expression.",
            "parameters": {
                "type": "object",
                "properties": {"expression": {
                    "type": "string",
                    "description": "Numbers with + - * / // % ** and parentheses, such as (12+30)*7",
                }},
                "required": ["expression"],
            },
        }})
    },
    make: |_| Ok(Box::new(Calculator)),
};

struct Calculator;

impl BuiltInTool for Calculator {
    fn call(&self, arguments: &Value, _: &mut Value, _: Duration) -> Result<ToolOutput, ToolError> {
        let result = match &arguments["expression"] {
            Value::String(expression) => evaluate(expression),
            Value::Number(number) => evaluate(&number.to_string()),
            _ => Err("the argument `expression` is missing or no text".to_owned()),
        };
        result.map(ToolOutput::text).map_err(ToolError::raised)
    }
}
