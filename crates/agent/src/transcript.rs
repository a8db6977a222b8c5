//! A finished conversation as files store it: messages, end, rewards and extras, without tokens.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::training::verdict;
use super::{ENVIRONMENT_REWARD, EndReason, Episode};
use burnish_reward::Conversation;
use burnish_reward::reward_error::RewardError;
use burnish_util::json_number;

/// A finished conversation that is scored later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// All messages, the prompt's first.
    pub messages: Vec<Value>,
    /// [`Episode::prompt_messages`]; `None` in older files.
    #[serde(rename = "asked", default, skip_serializing_if = "Option::is_none")]
    pub prompt_messages: Option<usize>,
    /// [`Episode::tools`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// [`Episode::tokens_only`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_only: bool,
    pub end: EndReason,
    /// [`Episode::num_turns`].
    pub num_turns: usize,
    /// The rewards of tools, oldest first.
    #[serde(with = "json_number")]
    pub tool_rewards: Vec<f64>,
    /// The rewards of users and environments, oldest first.
    #[serde(with = "json_number")]
    pub turn_scores: Vec<f64>,
    /// The score, from loops that score themselves.
    #[serde(with = "json_number")]
    pub score: Option<f64>,
    /// [`Episode::extra`].
    pub extra: Map<String, Value>,
}

impl From<&Episode> for Transcript {
    fn from(episode: &Episode) -> Self {
        Self {
            messages: episode.messages.clone(),
            prompt_messages: Some(episode.prompt_messages),
            tools: episode.tools.clone(),
            tokens_only: episode.tokens_only,
            end: episode.end,
            num_turns: episode.num_turns(),
            tool_rewards: episode.tool_rewards(),
            turn_scores: episode.turn_scores(),
            score: episode.score,
            extra: episode.extra.clone(),
        }
    }
}

impl Transcript {
    /// Prepares the conversation for scoring by named reward functions: the reward of an environment then becomes the reward of
    /// its last turn, as in training.
    pub fn for_reward_functions(mut self) -> Self {
        if self.extra.contains_key(ENVIRONMENT_REWARD) {
            self.turn_scores.extend(self.score.take());
        }
        self
    }
}

impl Conversation for Transcript {
    fn messages(&self) -> &[Value] {
        &self.messages
    }

    fn prompt_len(&self) -> usize {
        self.prompt_messages.unwrap_or_else(|| {
            let is_model = |message: &Value| message["role"] == "assistant";
            self.messages.iter().position(is_model).unwrap_or(self.messages.len())
        })
    }

    fn tokens_only(&self) -> bool {
        self.tokens_only
    }

    fn num_turns(&self) -> usize {
        self.num_turns
    }

    fn tool_rewards(&self) -> Vec<f64> {
        self.tool_rewards.clone()
    }

    fn turn_scores(&self) -> Vec<f64> {
        self.turn_scores.clone()
    }

    fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    fn verdict(&self) -> Option<Result<f64, RewardError>> {
        verdict(self.end, &self.extra, self.score)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let text = r#"{"messages":[{"role":"user","content":"2*3"}],"end":"done","num_turns":4,"tool_rewards":["NaN",0.5],
            "turn_scores":[],"score":0.25,"extra":{"environment_reward":0.25}}"#;
        let conversation: Transcript = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&conversation).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert!(conversation.verdict().is_some_and(|verdict| verdict.is_ok_and(|score| score == 0.25)));
        let for_rewards = conversation.clone().for_reward_functions();
        assert!(for_rewards.verdict().is_none() && for_rewards.turn_scores() == [0.25]);
        let failed =
            Transcript { end: EndReason::Failed, extra: Map::from_iter([("fault".to_owned(), json!("lost"))]), ..conversation };
        assert!(failed.for_reward_functions().verdict().is_some_and(|verdict| verdict.is_err()));
    }
}
