//! verl's tool that judges answers to GSM8K (`verl.tools.gsm8k_tool.Gsm8kTool` of verl up to 0.7).

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};
use burnish_reward::gsm8k::{Method, extract_solution};
use burnish_util::python_value::{quoted, text_of};

pub(super) static GSM8K: BuiltInKind = BuiltInKind {
    name: "calc_gsm8k_reward",
    class_names: &["verl.tools.gsm8k_tool.Gsm8kTool"],
    doc: "compares an answer with the row's tools_kwargs.calc_gsm8k_reward.create_kwargs.ground_truth; the reward is -0.05 for an answer \
          not better than the conversation's last one",
    settings: &[],
    schema: || {
        json!({"type": "function", "function": {
            "name": "calc_gsm8k_reward",
            "description": "Checks an answer to the problem: the reward is 1.0 if it is right, else 0.0.",
            "parameters": {
                "type": "object",
                "properties": {"answer": {
                    "type": "string",
                    "description": "The answer, a number",
                }},
                "required": ["answer"],
            },
        }})
    },
    make: |_| Ok(Box::new(Gsm8k)),
};

struct Gsm8k;

/// Adds `#### ` before an answer without it, as verl's tool and interaction do before scoring.
pub(crate) fn marked(answer: &str) -> String {
    if answer.starts_with("#### ") { answer.to_owned() } else { format!("#### {answer}") }
}

impl BuiltInTool for Gsm8k {
    fn begin(&self, kwargs: &Value) -> Result<Value> {
        let truth = &kwargs["ground_truth"];
        let text = truth.as_str().map(str::to_owned).or_else(|| truth.is_number().then(|| text_of(truth)));
        let truth = text.context(
            "calc_gsm8k_reward needs the row's ground truth, as text: extra_info.tools_kwargs.calc_gsm8k_reward.create_kwargs.ground_truth",
        )?;
        Ok(json!({"truth": truth, "reward": 0.0}))
    }

    /// Matches verl's `execute`. Its state lasts as long as the conversation. verl 0.7 creates a new instance for each call, so
    /// that an answer is never worse than an earlier one there.
    fn call(&self, arguments: &Value, state: &mut Value, _: Duration) -> Result<ToolOutput, ToolError> {
        let answer = match arguments {
            Value::Object(fields) => fields.get("answer").map_or_else(String::new, text_of),
            _ => return Err(ToolError::raised("the arguments must be an object")),
        };
        let parsed = extract_solution(&marked(&answer), Method::Flexible);
        let reward = if parsed.is_some() && parsed.as_deref() == state["truth"].as_str() { 1.0 } else { 0.0 };
        let tool_reward = if reward > state["reward"].as_f64().unwrap_or(0.0) { 0.0 } else { -0.05 };
        state["reward"] = reward.into();
        // verl's scorer returns the integer 0 if it finds no answer.
        let shown = if parsed.is_none() {
            "0"
        } else if reward > 0.0 {
            "1.0"
        } else {
            "0.0"
        };
        let text = format!("Current parsed answer={} reward={shown}", quoted(&answer));
        Ok(ToolOutput { text, reward: Some(tool_reward) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{BuiltInTool, Gsm8k};

    #[test]
    fn an_answer_is_judged_and_repeating_costs() {
        let mut state = Gsm8k.begin(&json!({"ground_truth": "72"})).unwrap();
        for (arguments, text, reward) in [
            (json!({"answer": "71"}), "Current parsed answer='71' reward=0.0", -0.05),
            (json!({"answer": "#### 72"}), "Current parsed answer='#### 72' reward=1.0", 0.0),
            (json!({"answer": 72}), "Current parsed answer='72' reward=1.0", -0.05),
            (json!({"answer": "it's 72"}), "Current parsed answer=\"it's 72\" reward=1.0", -0.05),
            (json!({"answer": "none"}), "Current parsed answer='none' reward=0", -0.05),
            (json!({}), "Current parsed answer='' reward=0", -0.05),
            (json!({"answer": "so 72"}), "Current parsed answer='so 72' reward=1.0", 0.0),
        ] {
            let result = Gsm8k.call(&arguments, &mut state, Duration::ZERO).unwrap();
            assert_eq!((result.text.as_str(), result.reward), (text, Some(reward)));
        }
        assert!(Gsm8k.call(&json!(72), &mut state, Duration::ZERO).is_err());
        assert!(Gsm8k.begin(&json!({})).unwrap_err().to_string().contains("create_kwargs.ground_truth"));
    }
}
