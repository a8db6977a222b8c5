//! Properties of conversations with any model, tools, users and environments.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use burnish::agent::calls::{ParsedTurn, ToolCall};
use burnish::agent::loops::{Chat, Codec, EpisodeRecord, SingleTurn, TextEnvironmentLoop, ToolAgent, TrlChat, TrlLoop, TrlTurn};
use burnish::agent::participants::{EnvironmentStep, Outcome, PartyError, TextEnvironment, User, UserReply};
use burnish::agent::tokens::Appended;
use burnish::agent::tools::{ConversationView, ToolResult, Toolbox, ValidCall};
use burnish::agent::{AgentLoop, ConversationLimits, EndReason, Episode, FAULT, ReplyFailure, SampleRequest};
use burnish::rollout::{Finish, Response};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::scripted::{assert_whole, drive, no_limits};

/// Random numbers shared by all parties of a conversation.
#[derive(Clone)]
struct Dice(Arc<Mutex<u64>>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// Returns a random number below `sides`.
    fn throw(&self, sides: usize) -> usize {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (*state >> 33) as usize % sides
    }

    fn ids(&self, max: usize) -> Vec<u32> {
        (0..self.throw(max + 1)).map(|_| self.throw(1000) as u32).collect()
    }

    fn fault(&self) -> Option<PartyError> {
        let failure = [ReplyFailure::Raised, ReplyFailure::Timeout, ReplyFailure::Died][self.throw(3)];
        (self.throw(12) == 0).then(|| PartyError { failure, message: "it fell over".to_owned(), seconds: 0.5 })
    }
}

impl Codec for Dice {
    fn text(&self, ids: &[u32]) -> Result<String> {
        Ok(ids.iter().filter_map(|&id| char::from_u32(id + 0x4000)).collect())
    }

    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        Codec::text(self, ids)
    }

    fn ids(&self, text: &str) -> Result<Vec<u32>> {
        Ok(text.chars().map(|c| c as u32 - 0x4000).collect())
    }
}

impl Dice {
    fn calls(&self) -> Vec<ToolCall> {
        let name = |_| ["known", "unknown"][self.throw(2)].to_owned();
        let arguments = |_: &String| ["{}", "{\"a\": 1}", "7", "{oops"][self.throw(4)].to_owned();
        let names: Vec<String> = (0..self.throw(4)).map(name).collect();
        names.into_iter().map(|name| ToolCall { id: None, arguments: arguments(&name), name }).collect()
    }
}

impl Chat for Dice {
    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        Codec::text(self, ids)
    }

    fn read(&self, ids: &[u32], _: &[Value]) -> Result<ParsedTurn> {
        Ok(ParsedTurn {
            content: Codec::text(self, ids)?,
            calls: self.calls(),
            unreadable: self.throw(2),
            ..ParsedTurn::default()
        })
    }

    fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended> {
        assert!(!history.is_empty() && !ids.is_empty() && !new.is_empty());
        Ok(Appended { remove: self.throw(2), ids: self.ids(6) })
    }
}

impl TrlChat for Dice {
    fn read(&self, _: &[u32], turn: &[u32], _: &[Value]) -> Result<TrlTurn> {
        let call = |call: ToolCall| json!({"type": "function", "function": {"name": call.name, "arguments": {}}});
        let calls: Vec<Value> = self.calls().into_iter().map(call).collect();
        let content = Codec::text(self, turn)?;
        Ok(TrlTurn { message: json!({"role": "assistant", "content": content, "tool_calls": calls}), unreadable: self.throw(2) })
    }

    fn suffix(&self, answers: &[Value]) -> Result<Vec<u32>> {
        assert!(!answers.is_empty());
        Ok(self.ids(6))
    }
}

/// The random numbers, and the schemas of the tools.
struct Party(Dice, Vec<Value>);

impl Toolbox for Party {
    fn schemas(&self) -> &[Value] {
        &self.1
    }

    fn call(&mut self, calls: &[ValidCall], _: &ConversationView) -> Result<Vec<ToolResult>> {
        let reward = |dice: &Dice| [None, Some(0.0), Some(1.5)][dice.throw(3)];
        let failure = |dice: &Dice| [None, Some(ReplyFailure::Raised), Some(ReplyFailure::Timeout)][dice.throw(3)];
        let answer = || ToolResult {
            text: "answer".to_owned(),
            reward: reward(&self.0),
            failure: failure(&self.0),
            seconds: self.0.throw(3) as f64,
            extra: Map::from_iter([("fault".to_owned(), "forged".into())]),
        };
        // Sometimes a call gets no result, or there is a result without a call.
        let count = calls.len() + self.0.throw(3);
        Ok((0..count.saturating_sub(1)).map(|_| answer()).collect())
    }
}

impl User for Party {
    fn respond(&mut self, view: &ConversationView) -> Outcome<UserReply> {
        assert_eq!(view.response.len(), view.sampled.len());
        Ok(self.0.fault().map_or_else(
            || {
                let score = [None, Some(0.0), Some(1.0)][self.0.throw(3)];
                Ok(UserReply { text: "reply".to_owned(), ends: self.0.throw(6) == 0, score, seconds: self.0.throw(3) as f64 })
            },
            Err,
        ))
    }
}

impl TextEnvironment for Party {
    fn reset(&mut self, observation: &str, _: &Value) -> Outcome<String> {
        Ok(self.0.fault().map_or_else(|| Ok(observation.to_owned()), Err))
    }

    fn step(&mut self, _: &str, _: &str) -> Outcome<EnvironmentStep> {
        let feedback = Codec::text(&self.0, &self.0.ids(6))?;
        Ok(self.0.fault().map_or_else(
            || {
                let max_tokens = [None, Some(0), Some(3)][self.0.throw(3)];
                let done = self.0.throw(8) == 0;
                Ok(EnvironmentStep {
                    reward: 0.5,
                    score: None,
                    feedback,
                    done,
                    max_tokens,
                    extra: Map::new(),
                    seconds: self.0.throw(3) as f64,
                })
            },
            Err,
        ))
    }
}

fn limits(dice: &Dice) -> ConversationLimits {
    let turns = || Some(dice.throw(6)).filter(|turns| *turns < 5);
    let prompt_length = 1 + dice.throw(8);
    ConversationLimits {
        max_assistant_turns: turns(),
        max_user_turns: turns(),
        max_parallel_calls: dice.throw(3),
        max_tool_response_length: dice.throw(8),
        prompt_length,
        response_length: 1 + dice.throw(60),
        longest_token: [1, 9, usize::MAX][dice.throw(3)],
        max_model_len: Some(dice.throw(80)).filter(|_| dice.throw(2) == 0),
        conversation_timeout: Some(Duration::from_secs(8)).filter(|_| dice.throw(2) == 0),
        ..no_limits()
    }
}

/// Checks properties of every kind of conversation. `may_overrun`: texts of tools and users may exceed the token limit before the
/// cut.
fn check(label: &str, agent: Box<dyn AgentLoop>, dice: &Dice, limits: &ConversationLimits) -> Episode {
    let (mut turns, mut longest): (Vec<Response>, Vec<u32>) = (Vec::new(), Vec::new());
    let (episode, requests) = drive(agent, |at, ask: &SampleRequest| {
        assert!(at < 1000, "{label}: no end");
        // Later turns do not change the earlier text; a template may merge text with the last token.
        let kept = longest.len().saturating_sub(1).min(ask.ids.len());
        assert_eq!(ask.ids[..kept], longest[..kept], "{label}");
        // A model samples at least one token; this one may exceed its token limit by one.
        let length = 1 + dice.throw(ask.max_tokens.min(9) + 1);
        let ids: Vec<u32> = (0..length).map(|_| dice.throw(1000) as u32).collect();
        let log_probs: Vec<f32> = ids.iter().map(|_| -1.0 - dice.throw(50) as f32).collect();
        longest = [&ask.ids[..], &ids[..length.min(ask.max_tokens)]].concat();
        let finish = [Finish::Stop, Finish::Length][usize::from(length >= ask.max_tokens)];
        turns.push(Response { rollout_log_probs: log_probs.clone(), ids, log_probs, finish });
        turns[at].clone()
    });
    assert_whole(label, &episode, &turns);
    // A model may exceed its token limit.
    let assistant = turns
        .iter()
        .zip(&requests)
        .map(|(turn, ask)| Codec::text(dice, &turn.ids[..turn.ids.len().min(ask.max_tokens)]).unwrap());
    let messages = episode.messages[episode.prompt_messages..].iter().filter(|message| message["role"] == "assistant");
    let printed: Vec<&str> = messages.map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(printed, assistant.collect::<Vec<_>>(), "{label}: the messages of the assistant are the turns");
    assert!(episode.prompt.len() <= limits.prompt_length && episode.ids.len() <= limits.response_length, "{label}");
    let max = limits.max_model_len.unwrap_or(usize::MAX).max(episode.prompt.len());
    assert!(episode.prompt.len() + episode.ids.len() <= max, "{label}");
    assert_eq!(episode.assistant_turns, requests.len(), "{label}");
    let bound = |max: Option<usize>| max.filter(|max| *max > 0).unwrap_or(usize::MAX - 1);
    let max = bound(limits.max_assistant_turns).min(bound(limits.max_user_turns) + 1);
    assert!(episode.assistant_turns <= max, "{label}: {} turns", episode.assistant_turns);
    let has_failed = matches!(episode.end, EndReason::Failed | EndReason::Timeout);
    assert_eq!(episode.extra.contains_key(FAULT), has_failed, "{label}: {:?}", episode.extra);
    assert!(!has_failed || episode.score.is_none(), "{label}");
    episode
}

proptest! {
    #[test]
    fn conversations_end_whole(seed: u64) {
        let dice = Dice::new(seed);
        let party = || Box::new(Party(dice.clone(), vec![json!({"type": "function", "function": {"name": "known"}})]));
        let messages = vec![json!({"role": "user", "content": "go"})];
        let begin = |dice: &Dice| {
            let limits = limits(dice);
            let ids = [vec![0], dice.ids(12)].concat();
            (EpisodeRecord::new(messages.clone(), ids, limits.clone()), limits)
        };
        let all = Arc::new(dice.clone());

        let (record, bounds) = begin(&dice);
        let mut agent = ToolAgent::new(record, all.clone(), party()).tells_unreadable(dice.throw(2) == 0);
        if dice.throw(2) == 0 {
            agent = agent.with_user(party());
        }
        let episode = check("tool agent", Box::new(agent), &dice, &bounds);
        let ends_sampled = episode.sampled.last().is_none_or(|sampled| *sampled);
        prop_assert!(ends_sampled || episode.end == EndReason::Failed, "the response ends with a sampled token");

        let (record, bounds) = begin(&dice);
        let iterations = Some(dice.throw(5)).filter(|max| *max < 4);
        check("TRL", Box::new(TrlLoop::new(record, all.clone(), party(), iterations)), &dice, &bounds);

        let bounds = limits(&dice);
        let prompt = Codec::text(&dice, &dice.ids(12)).unwrap();
        let agent = TextEnvironmentLoop::new(messages.clone(), prompt, Value::Null, bounds.clone(), all.clone(), party());
        check("environment of texts", Box::new(agent), &dice, &bounds);

        let (record, bounds) = begin(&dice);
        let episode = check("single turn", Box::new(SingleTurn::new(record, all)), &dice, &bounds);
        prop_assert_eq!(episode.messages.len(), 1 + episode.assistant_turns);
    }
}
