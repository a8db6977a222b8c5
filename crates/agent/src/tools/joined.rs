//! Several toolboxes joined to one.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{ConversationView, ToolResult, Toolbox, ValidCall};

/// The tools of several toolboxes, such as built-in ones and Python tools.
pub struct JoinedToolbox {
    parts: Vec<Box<dyn Toolbox>>,
    schemas: Vec<Value>,
    /// For each schema, the tool's name and the index of its toolbox.
    names: Vec<(String, usize)>,
}

impl JoinedToolbox {
    /// Joins toolboxes; their schemas stay in this order.
    ///
    /// # Errors
    /// If two tools have the same name, as in verl.
    pub fn new(parts: Vec<Box<dyn Toolbox>>) -> Result<Self> {
        let mut schemas: Vec<Value> = Vec::new();
        let mut names: Vec<(String, usize)> = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            for schema in part.schemas() {
                let name = schema["function"]["name"].as_str().context("the schema of a tool has no function.name")?;
                if names.iter().any(|(known, _)| known == name) {
                    bail!("two tools have the name {name}: rename one of them in its schema, or leave it out");
                }
                names.push((name.to_owned(), index));
                schemas.push(schema.clone());
            }
        }
        Ok(Self { parts, schemas, names })
    }
}

impl Toolbox for JoinedToolbox {
    fn schemas(&self) -> &[Value] {
        &self.schemas
    }

    /// The toolboxes run their calls concurrently.
    fn call(&mut self, calls: &[ValidCall], view: &ConversationView) -> Result<Vec<ToolResult>> {
        let part_of = |call: &ValidCall| self.names.iter().find(|(name, _)| *name == call.written.name).map(|(_, index)| *index);
        let owners: Vec<usize> = calls
            .iter()
            .map(|call| part_of(call).with_context(|| format!("no toolbox has the tool {}", call.written.name)))
            .collect::<Result<_>>()?;
        let mut shares: Vec<Vec<ValidCall>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (call, owner) in calls.iter().zip(&owners) {
            shares[*owner].push(call.clone());
        }
        let calls_of_parts = self.parts.iter_mut().zip(&shares);
        let answers: Vec<Result<Vec<ToolResult>>> = if shares.iter().filter(|share| !share.is_empty()).count() < 2 {
            calls_of_parts.map(|(part, share)| if share.is_empty() { Ok(vec![]) } else { part.call(share, view) }).collect()
        } else {
            std::thread::scope(|scope| {
                let threads: Vec<_> = calls_of_parts
                    .map(|(part, share)| scope.spawn(move || if share.is_empty() { Ok(vec![]) } else { part.call(share, view) }))
                    .collect();
                let broken = |_| Err(anyhow::anyhow!("a toolbox broke off"));
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(broken)).collect()
            })
        };
        let mut answers: Vec<_> = answers.into_iter().map(|answers| answers.map(Vec::into_iter)).collect::<Result<_>>()?;
        owners.into_iter().map(|owner| answers[owner].next().context("a toolbox has fewer answers than calls")).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::calls::ToolCall;

    /// Returns its own name, the call's and the number of calls that it got.
    struct Named(&'static str, Vec<Value>);

    impl Named {
        fn boxed(name: &'static str, tools: &[&str]) -> Box<dyn Toolbox> {
            Box::new(Self(name, tools.iter().map(|tool| json!({"type": "function", "function": {"name": tool}})).collect()))
        }
    }

    impl Toolbox for Named {
        fn schemas(&self) -> &[Value] {
            &self.1
        }

        fn call(&mut self, calls: &[ValidCall], _: &ConversationView) -> Result<Vec<ToolResult>> {
            let text = |call: &ValidCall| format!("{} {} {}", self.0, call.written.name, calls.len());
            let answer = |call| ToolResult { text: text(call), reward: None, failure: None, seconds: 0.0, extra: Map::new() };
            Ok(calls.iter().map(answer).collect())
        }
    }

    #[test]
    fn each_call_goes_to_its_toolbox_and_answers_come_in_order() {
        let mut joined = JoinedToolbox::new(vec![Named::boxed("A", &["x", "y"]), Named::boxed("B", &["z"])]).unwrap();
        assert_eq!(joined.schemas().len(), 3);
        let call = |name: &str| ValidCall {
            written: ToolCall { id: None, name: name.to_owned(), arguments: "{}".to_owned() },
            arguments: json!({}),
        };
        let mut texts = |names: &[&str]| {
            let calls: Vec<ValidCall> = names.iter().map(|name| call(name)).collect();
            joined.call(&calls, &ConversationView::EMPTY).unwrap().into_iter().map(|answer| answer.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&["z", "x", "z", "y"]), ["B z 2", "A x 2", "B z 2", "A y 2"]);
        assert_eq!(texts(&["y"]), ["A y 1"]);
        assert_eq!(texts(&[]), [""; 0]);
        let error = JoinedToolbox::new(vec![Named::boxed("A", &["x"]), Named::boxed("B", &["x"])]).err().unwrap();
        assert!(error.to_string().contains("two tools have the name x"));
    }
}
