//! The loop with functions as tools, compared with TRL 1.16's.
//!
//! One difference is on purpose: the result of a function that returns a list is the list's text. TRL hands the list to the chat
//! template, and a template that writes only text writes nothing.

use std::sync::Arc;

use anyhow::Result;
use burnish::agent::calls::format_named;
use burnish::agent::loops::{EpisodeRecord, ResponseTemplateChat, TrlChat, TrlLoop};
use burnish::agent::tokens::SpecialTokenEscaper;
use burnish::agent::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use burnish::agent::{ConversationLimits, ReplyFailure};
use burnish::data::TemplateVariables;
use serde_json::{Map, Value};

use super::scripted::{assert_whole, drive, floats_of, ids_of, mask_of, no_limits, number_of, prompt_ids, tokenizer, turn};
use crate::cases::golden_file;

/// Functions with the results of the case. They take the arguments of their schemas.
struct Functions {
    schemas: Vec<Value>,
    results: Value,
}

/// Python's `repr`.
fn repr(value: &Value) -> String {
    let text = burnish::util::python_value::text_of(&Value::from(vec![value.clone()]));
    text[1..text.len() - 1].to_owned()
}

impl Toolbox for Functions {
    fn schemas(&self) -> &[Value] {
        &self.schemas
    }

    fn call(&mut self, calls: &[ValidCall], _: &ConversationView) -> Result<Vec<ToolResult>> {
        Ok(calls.iter().map(|call| self.one(call)).collect())
    }
}

impl Functions {
    fn one(&self, call: &ValidCall) -> ToolResult {
        let name = &call.written.name;
        let schema = self.schemas.iter().find(|schema| schema["function"]["name"] == **name).unwrap();
        let known = &schema["function"]["parameters"]["properties"];
        let unknown = call.arguments.as_object().unwrap().keys().find(|key| known.get(key.as_str()).is_none());
        let result = &self.results[name];
        let raised = unknown
            .map(|key| format!("{name}() got an unexpected keyword argument '{key}'"))
            .or_else(|| result["raises"].as_str().map(str::to_owned));
        let (text, failure) = match raised {
            Some(message) => (format!("{{'error': {}}}", repr(&message.into())), Some(ReplyFailure::Raised)),
            None => (burnish::util::python_value::text_of(result), None),
        };
        ToolResult { text, reward: None, failure, seconds: 0.0, extra: Map::new() }
    }
}

#[test]
fn golden_functions_are_trls() {
    let golden = golden_file("agents/loop_trl.json");
    let cases = golden["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let label = format!("{} {}", case["template"], case["case"]);
        let tokenizer = tokenizer("chatml", case["template"].as_str().unwrap());
        let chat = Arc::new(ResponseTemplateChat {
            tokenizer: tokenizer.clone(),
            variables: TemplateVariables::default(),
            template: case["template"].as_str().unwrap().to_owned(),
            format: format_named("hermes"),
            escaper: Some(SpecialTokenEscaper::new(&tokenizer).unwrap().into()),
        });
        let schemas = case["tools"].as_array().unwrap().clone();
        let functions = Functions { schemas, results: case["results"].clone() };
        let limits = ConversationLimits {
            response_length: number_of(&case["max_completion_length"]),
            max_model_len: Some(number_of(&case["max_position_embeddings"])),
            ..no_limits()
        };
        let prompt = prompt_ids(&tokenizer, &case["messages"], &case["tools"]);
        assert_eq!(prompt, ids_of(&case["prompt_ids"]), "{label}");
        let record = EpisodeRecord::new(case["messages"].as_array().unwrap().clone(), prompt, limits);
        let iterations = case["max_tool_calling_iterations"].as_u64().map(|max| max as usize);
        let mut turns = Vec::new();
        let (episode, _) = drive(Box::new(TrlLoop::new(record, chat.clone(), Box::new(functions), iterations)), |at, ask| {
            let ids = ids_of(&case["generated"][at]);
            let log_prob = if at == 0 { -0.5 } else { -0.25 };
            let turn = turn(&ids, &vec![log_prob; ids.len()], ask);
            turns.push(turn.clone());
            turn
        });
        assert_whole(&label, &episode, &turns);
        assert_eq!(turns.len(), case["generated"].as_array().unwrap().len(), "{label}");
        assert_eq!(Value::from(episode.calls.len()), case["tool_calls"], "{label}");
        let failures = episode.calls.iter().filter(|call| call.failure.is_some()).count();
        assert_eq!(Value::from(failures), case["tool_failures"], "{label}");

        let assistant = &episode.messages[case["messages"].as_array().unwrap().len()..];
        let mut expected = case["completion"].as_array().unwrap().clone();
        let mut has_list = false;
        for message in &mut expected {
            if message["role"] == "tool" && message["content"].is_array() {
                has_list = true;
                message["content"] = burnish::util::python_value::text_of(&message["content"]).into();
            }
        }
        assert_eq!(assistant, expected, "{label}");
        if has_list {
            let answers: Vec<Value> = assistant.iter().filter(|message| message["role"] == "tool").cloned().collect();
            let middle = chat.suffix(&answers).unwrap();
            assert_eq!(episode.ids, [&turns[0].ids[..], &middle, &turns[1].ids].concat(), "{label}");
            continue;
        }
        assert_eq!(episode.ids, ids_of(&case["completion_ids"]), "{label}");
        assert_eq!(episode.sampled, mask_of(&case["tool_mask"]), "{label}");
        assert_eq!(episode.log_probs, floats_of(&case["logprobs"]), "{label}");
    }
}
