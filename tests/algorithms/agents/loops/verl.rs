//! The tool agent, compared with verl 0.9.1's.
//!
//! The messages differ on purpose. They include the turn that reached a limit, all calls of a turn, and the text of calls that
//! cannot be parsed. They have no special tokens, and no results that did not fit.

use std::collections::HashMap;
use std::sync::Arc;

use burnish::agent::calls::format_named;
use burnish::agent::loops::{EpisodeRecord, TemplateChat, ToolAgent};
use burnish::agent::tokens::Continuation;
use burnish::agent::{ConversationLimits, EndReason, Episode, TruncateSide};
use burnish::rollout::Response;
use serde_json::{Value, json};

use super::scripted::{
    Events, Tools, assert_whole, drive, floats_of, ids_of, mask_of, no_limits, number_of, prompt_ids, tokenizer, turn, with_tools,
};
use crate::cases::golden_file;

/// The limits of a case's `config`.
pub(super) fn limits(config: &Value) -> ConversationLimits {
    let turns = |key: &str| config[key].as_u64().map(|turns| turns as usize);
    ConversationLimits {
        max_assistant_turns: turns("max_assistant_turns"),
        max_user_turns: turns("max_user_turns"),
        max_parallel_calls: number_of(&config["max_parallel_calls"]),
        max_tool_response_length: number_of(&config["max_tool_response_length"]),
        truncate: match config["tool_response_truncate_side"].as_str() {
            Some("left") => TruncateSide::Left,
            Some("right") => TruncateSide::Right,
            _ => TruncateSide::Middle,
        },
        prompt_length: number_of(&config["prompt_length"]),
        response_length: number_of(&config["response_length"]),
        ..no_limits()
    }
}

/// The tools that a row may see.
fn tools(case: &Value) -> Vec<Value> {
    let all = case["tools"].as_array().unwrap();
    let selection = case["row"]["extra_info"]["tool_selection"].as_array().filter(|names| !names.is_empty());
    let Some(selection) = selection else { return all.clone() };
    selection.iter().filter_map(|name| all.iter().find(|tool| tool["function"]["name"] == *name)).cloned().collect()
}

/// Returns true for a cut whose token limit leaves no text: verl then keeps the whole text, ours keeps none.
fn is_cut_to_nothing(case: &Value) -> bool {
    let is_middle = !["left", "right"].map(Value::from).contains(&case["config"]["tool_response_truncate_side"]);
    let longest = number_of(&case["config"]["max_tool_response_length"]);
    let is_longer = |outcome: &Value| outcome["text"].as_str().is_some_and(|text| text.chars().count() > longest);
    let behaviours = case["tool_behaviour"].as_object().unwrap().values();
    let any_longer = behaviours.flat_map(|outcomes| outcomes.as_array().unwrap()).any(is_longer);
    let keeps_none =
        if is_middle { longest < 2 } else { longest == 0 && case["config"]["tool_response_truncate_side"] == "left" };
    keeps_none && any_longer
}

/// Returns verl's messages in the form of this program.
fn messages(case: &Value, episode: &Episode, turns: &[Response]) -> Vec<Value> {
    let tokenizer = tokenizer(case["tokenizer"].as_str().unwrap(), case["template"].as_str().unwrap());
    let format = format_named(case["config"]["format"].as_str().unwrap()).unwrap();
    let mut messages = case["final_messages"].as_array().unwrap().clone();
    let is_model = |message: &Value| message["role"] == "assistant";
    if episode.end == EndReason::ContextTooLong {
        messages.truncate(messages.iter().rposition(is_model).unwrap() + 1);
    }
    let assistant = messages.iter().filter(|message| is_model(message)).count();
    let ended = matches!(episode.end, EndReason::Length | EndReason::AssistantTurns | EndReason::UserTurns);
    assert_eq!(turns.len() - assistant, usize::from(ended), "{}", case["case"]);
    messages.extend(turns[assistant..].iter().map(|_| json!({"role": "assistant"})));
    for (message, turn) in messages.iter_mut().filter(|message| is_model(message)).zip(turns) {
        let parsed = (format.parse)(&tokenizer.decode(&turn.ids, false).unwrap(), &tools(case));
        if parsed.calls.is_empty() {
            message["content"] = tokenizer.decode(&turn.ids, true).unwrap().into();
            continue;
        }
        let content = message["content"].as_str().unwrap_or(&parsed.content).replace("<|im_end|>", "");
        message["content"] = content.into();
        let known = message["tool_calls"].as_array().map_or(0, Vec::len);
        let others = parsed.calls[known..].iter().map(|call| {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            json!({"type": "function", "function": {"name": call.name, "arguments": arguments}})
        });
        let calls: Vec<Value> = message["tool_calls"].as_array().into_iter().flatten().cloned().chain(others).collect();
        message["tool_calls"] = calls.into();
    }
    messages
}

fn run(case: &Value) -> (Episode, Vec<Response>, Events) {
    let tokenizer = tokenizer(case["tokenizer"].as_str().unwrap(), case["template"].as_str().unwrap());
    let schemas = tools(case);
    let shown = Value::from(schemas.clone());
    let model_type = case["model_type"].as_str().unwrap();
    let continuation = Continuation::new(tokenizer.clone(), model_type, with_tools(&shown)).unwrap();
    let chat = TemplateChat {
        tokenizer: tokenizer.clone(),
        continuation: Arc::new(continuation),
        format: format_named(case["config"]["format"].as_str().unwrap()).unwrap(),
        ignore_in_thinking: false,
    };
    let events = Events::default();
    let tools = Tools {
        schemas,
        behaviour: case["tool_behaviour"].clone(),
        kwargs: case["row"]["tools_kwargs"].clone(),
        events: events.clone(),
        calls: HashMap::new(),
    };
    let prompt = prompt_ids(&tokenizer, &case["messages"], &shown);
    let record = EpisodeRecord::new(case["messages"].as_array().unwrap().clone(), prompt, limits(&case["config"]));
    let mut turns = Vec::new();
    let (episode, _) = drive(Box::new(ToolAgent::new(record, Arc::new(chat), Box::new(tools))), |at, ask| {
        let generation = &case["generations"][at];
        assert!(!generation.is_null(), "{}: a turn that verl does not sample", case["case"]);
        assert!(ask.max_tokens <= number_of(&generation["limit"]));
        let log_probs = generation["log_probs"].as_array().map(|_| floats_of(&generation["log_probs"]));
        let turn = turn(&ids_of(&generation["token_ids"]), &log_probs.unwrap_or_default(), ask);
        turns.push(turn.clone());
        turn
    });
    assert_eq!(turns.len(), case["generations"].as_array().unwrap().len(), "{}", case["case"]);
    assert_whole(case["case"].as_str().unwrap(), &episode, &turns);
    (episode, turns, events)
}

#[test]
fn golden_tool_agent_is_verls() {
    let golden = golden_file("agents/loop_verl.json");
    let cases = golden["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let label = case["case"].as_str().unwrap();
        let (episode, turns, events) = run(case);
        let of = |of_tool: bool| -> Vec<f64> {
            episode.rewards.iter().filter(|reward| reward.of_tool == of_tool).map(|reward| reward.value).collect()
        };
        assert_eq!(Value::from(of(true)), case["tool_rewards"], "{label}");
        assert_eq!(Value::from(of(false)), case["turn_scores"], "{label}");
        assert_eq!(Value::from(episode.assistant_turns), case["assistant_turns"], "{label}");
        assert_eq!(Value::from(episode.user_turns), case["user_turns"], "{label}");
        assert_eq!(Value::from(episode.num_turns()), case["num_turns"], "{label}");
        assert_eq!(Value::from(events.lock().unwrap().clone()), case["tool_events"], "{label}");
        assert_eq!(episode.prompt, ids_of(&case["prompt_ids"]), "{label}");
        assert_ne!(episode.end, EndReason::Failed, "{label}");
        if is_cut_to_nothing(case) {
            let texts: Vec<&str> =
                episode.messages.iter().filter(|m| m["role"] == "tool").filter_map(|m| m["content"].as_str()).collect();
            assert!(texts.iter().all(|text| text.trim_matches('.') == "(truncated)"), "{label}: {texts:?}");
            continue;
        }
        assert_eq!(episode.messages, messages(case, &episode, &turns), "{label}");
        assert_eq!(episode.ids, ids_of(&case["response_ids"]), "{label}");
        assert_eq!(episode.sampled, mask_of(&case["response_mask"]), "{label}");
        if !case["response_log_probs"].is_null() {
            assert_eq!(episode.log_probs, floats_of(&case["response_log_probs"]), "{label}");
            assert_eq!(episode.rollout_log_probs, floats_of(&case["response_log_probs"]), "{label}");
        }
    }
}
