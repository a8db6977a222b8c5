//! The environment of texts, compared with OpenRLHF 0.11's.

use std::sync::{Arc, Mutex};

use burnish::agent::ConversationLimits;
use burnish::agent::loops::TextEnvironmentLoop;
use burnish::agent::participants::{EnvironmentStep, Outcome, TextEnvironment};
use burnish::rollout::Finish;
use serde_json::{Value, json};

use super::scripted::{Events, assert_whole, drive, floats_of, ids_of, no_limits, number_of, tokenizer, turn};
use crate::cases::{assert_number, golden_file, number};

/// An environment with the texts of the case.
struct Scripted {
    case: Value,
    events: Events,
}

impl TextEnvironment for Scripted {
    fn reset(&mut self, observation: &str, _: &Value) -> Outcome<String> {
        Ok(Ok(self.case["reset"].as_str().unwrap_or(observation).to_owned()))
    }

    fn step(&mut self, observation: &str, action: &str) -> Outcome<EnvironmentStep> {
        let mut events = self.events.lock().unwrap();
        let step = &self.case["steps"][events.len()];
        events.push(json!({"observation_text": observation, "action_text": action}));
        Ok(Ok(EnvironmentStep {
            reward: number(&step["rewards"]),
            score: step["scores"].as_f64(),
            feedback: step["environment_feedback"].as_str().unwrap().to_owned(),
            done: step["done"].as_bool().unwrap(),
            max_tokens: None,
            extra: step["extra_logs"].as_object().cloned().unwrap_or_default(),
            seconds: 0.0,
        }))
    }
}

#[test]
fn golden_text_environment_is_openrlhfs() {
    let golden = golden_file("agents/loop_openrlhf.json");
    let cases = golden["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let label = case["case"].as_str().unwrap();
        let longest = number_of(&case["max_length"]);
        let new = case["initial_max_tokens"].as_u64().map_or(1, |tokens| tokens.max(1) as usize);
        let limits = ConversationLimits {
            prompt_length: longest - new,
            response_length: longest,
            max_model_len: Some(longest),
            ..no_limits()
        };
        let events = Arc::new(Mutex::new(Vec::new()));
        let environment = Scripted { case: case.clone(), events: events.clone() };
        let codec = Arc::new(tokenizer("chatml", "qwen2_5"));
        let prompt = case["prompt"].as_str().unwrap().to_owned();
        let agent = TextEnvironmentLoop::new(vec![], prompt, Value::Null, limits, codec, Box::new(environment));
        let mut turns = Vec::new();
        let (episode, requests) = drive(Box::new(agent), |at, ask| {
            let ids = ids_of(&case["generations"][at]["token_ids"]);
            let log_probs: Vec<f32> = (1..=ids.len()).map(|i| -0.01 * i as f32).collect();
            let mut turn = turn(&ids, &log_probs, ask);
            // The ids of a case are only the ids that fit.
            turn.finish = if ids.len() == ask.max_tokens { Finish::Length } else { Finish::Stop };
            turns.push(turn.clone());
            turn
        });
        assert_whole(label, &episode, &turns);
        let max: Vec<Value> = requests.iter().map(|ask| ask.max_tokens.into()).collect();
        let expected: Vec<Value> = case["generations"].as_array().unwrap().iter().map(|g| g["max_tokens"].clone()).collect();
        assert_eq!(max, expected, "{label}");
        assert_eq!(Value::from(events.lock().unwrap().clone()), case["step_inputs"], "{label}");

        let tokens = [&episode.prompt[..], &episode.ids].concat();
        let mut expected = ids_of(&case["observation_tokens"]);
        expected.truncate(longest);
        assert_eq!(tokens, expected, "{label}");
        let mut sampled = vec![false; expected.len()];
        for range in case["action_ranges"].as_array().unwrap() {
            sampled[number_of(&range[0])..number_of(&range[1])].fill(true);
        }
        assert_eq!(episode.sampled, sampled[episode.prompt.len()..], "{label}");
        let sample = &case["sample"];
        assert_eq!(tokens.len(), number_of(&sample["sequence_length"]), "{label}");
        assert_eq!(episode.sampled.iter().filter(|&&sampled| sampled).count(), number_of(&sample["generated_tokens"]), "{label}");
        if !case["rollout_log_probs"].is_null() {
            let expected = &floats_of(&case["rollout_log_probs"])[episode.prompt.len()..tokens.len()];
            assert!(episode.rollout_log_probs.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{label}");
        }
        assert_number(label, episode.score.unwrap(), number(&case["reward"]));
        assert_number(label, number(&episode.extra["scores"]), number(&case["scores"]));
        assert_eq!(episode.extra["extra_logs"], case["extra_logs"], "{label}");
        assert_eq!(episode.finish == Finish::Length, case["truncated"].as_bool().unwrap(), "{label}");
    }
}
