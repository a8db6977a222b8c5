//! Simulated users of the tool agent, compared with verl 0.7's interactions.
//!
//! These differences are on purpose:
//! - The token that ends a turn is followed by the template's newline; verl 0.7 leaves it out.
//! - A user's last text that ends the conversation is not appended, nor is a text that does not fit: the response ends with a
//!   sampled token.
//! - The sides of a cut have their current names: `left` cuts the beginning, which was `right`.
//! - Messages with calls have them as `tool_calls`, and as text only in the text of users' messages.
//! - The messages include the turn that reached a limit, and exclude text that did not fit.

use std::collections::HashMap;
use std::sync::Arc;

use burnish::agent::calls::format_named;
use burnish::agent::loops::{EpisodeRecord, TemplateChat, ToolAgent};
use burnish::agent::participants::{Outcome, User, UserReply};
use burnish::agent::tokens::{Appended, Continuation};
use burnish::agent::tools::ConversationView;
use burnish::agent::{EndReason, TruncateSide};
use serde_json::{Value, json};

use super::scripted::{
    Events, Tools, WithAppended, assert_whole, drive, ids_of, mask_of, prompt_ids, tokenizer, turn, with_tools,
};
use super::verl::limits;
use crate::cases::golden_file;

/// A user with the texts of the case; it repeats the last one.
struct Scripted {
    replies: Vec<Value>,
    events: Events,
    count: usize,
}

impl User for Scripted {
    fn respond(&mut self, view: &ConversationView) -> Outcome<UserReply> {
        self.events.lock().unwrap().push(json!(["respond", view.messages.len(), view.messages.last()]));
        let reply = &self.replies[self.count.min(self.replies.len() - 1)];
        self.count += 1;
        let text = reply[1].as_str().unwrap().to_owned();
        Ok(Ok(UserReply { text, ends: reply[0] == true, score: reply[2].as_f64(), seconds: 0.0 }))
    }
}

#[test]
fn golden_users_are_verls() {
    let golden = golden_file("agents/interaction_verl_0_7.json");
    let cases = golden["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let label = case["case"].as_str().unwrap();
        let tokenizer = tokenizer("chatml", case["template"].as_str().unwrap());
        let chat = TemplateChat {
            tokenizer: tokenizer.clone(),
            continuation: Arc::new(Continuation::new(tokenizer.clone(), "qwen2", with_tools(&case["tools"])).unwrap()),
            format: format_named(case["config"]["format"].as_str().unwrap()).unwrap(),
            ignore_in_thinking: false,
        };
        let newline = tokenizer.single("\n").unwrap();
        let chat = WithAppended(chat, move |appended: Appended| {
            assert_eq!((appended.remove, appended.ids[0]), (0, newline), "the newline behind the token that ends a turn");
            Appended { remove: 0, ids: appended.ids[1..].to_vec() }
        });
        let mut limits = limits(&case["config"]);
        limits.truncate = match limits.truncate {
            TruncateSide::Left => TruncateSide::Right,
            TruncateSide::Right => TruncateSide::Left,
            TruncateSide::Middle => TruncateSide::Middle,
        };
        let events = Events::default();
        let tools = Tools {
            schemas: case["tools"].as_array().unwrap().clone(),
            behaviour: json!({"get_weather": [{"text": "21 degrees Celsius", "reward": 0.5}]}),
            kwargs: Value::Null,
            events: Events::default(),
            calls: HashMap::new(),
        };
        let user = Scripted { replies: case["interaction"].as_array().unwrap().clone(), events: events.clone(), count: 0 };
        let prompt = prompt_ids(&tokenizer, &case["messages"], &case["tools"]);
        assert_eq!(prompt, ids_of(&case["prompt_ids"]), "{label}");
        let record = EpisodeRecord::new(case["messages"].as_array().unwrap().clone(), prompt, limits);
        let agent = ToolAgent::new(record, Arc::new(chat), Box::new(tools)).with_user(Box::new(user));
        let mut turns = Vec::new();
        let (episode, _) = drive(Box::new(agent), |at, ask| {
            let turn = turn(&ids_of(&case["generations"][at]["token_ids"]), &[], ask);
            turns.push(turn.clone());
            turn
        });
        assert_whole(label, &episode, &turns);

        let expected: Vec<Value> = case["events"].as_array().unwrap()[1..].to_vec();
        assert_eq!(*events.lock().unwrap(), expected, "{label}");
        let of = |of_tool: bool| -> Vec<f64> {
            episode.rewards.iter().filter(|reward| reward.of_tool == of_tool).map(|reward| reward.value).collect()
        };
        assert_eq!(Value::from(of(true)), case["tool_rewards"], "{label}");
        assert_eq!(Value::from(of(false)), case["turn_scores"], "{label}");
        let is_model = |message: &&mut Value| message["role"] == "assistant";
        let texts: Vec<String> = turns.iter().map(|turn| tokenizer.decode(&turn.ids, true).unwrap()).collect();
        let mut messages = episode.messages.clone();
        for (message, text) in messages.iter_mut().filter(is_model).zip(&texts) {
            if let Some(calls) = message.as_object_mut().unwrap().remove("tool_calls") {
                assert_eq!((calls.as_array().unwrap().len(), message["content"].as_str()), (1, Some("")), "{label}");
                message["content"] = text.as_str().into();
            }
        }
        let mut expected = case["final_messages"].as_array().unwrap().clone();
        let did_not_fit = episode.end == EndReason::ContextTooLong && expected.last().unwrap()["role"] == "user";
        if episode.end == EndReason::ContextTooLong {
            expected.pop();
        }
        let assistant = expected.iter_mut().filter(is_model).count();
        expected.extend(texts[assistant..].iter().map(|text| json!({"role": "assistant", "content": text})));
        assert_eq!(messages, expected, "{label}");
        if !did_not_fit {
            assert_eq!(Value::from(episode.assistant_turns), case["assistant_turns"], "{label}");
            assert_eq!(Value::from(episode.user_turns), case["user_turns"], "{label}");
            assert_eq!(Value::from(episode.num_turns()), case["num_turns"], "{label}");
        }
        let mask = mask_of(&case["response_mask"]);
        let trained = mask.iter().rposition(|&sampled| sampled).map_or(0, |at| at + 1);
        assert_eq!(episode.ids, ids_of(&case["response_ids"])[..trained], "{label}");
        assert_eq!(episode.sampled, mask[..trained], "{label}");
    }
}
