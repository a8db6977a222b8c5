//! The views of an episode that the rest of a run uses: tokens for training, the conversation for reward functions.

use serde_json::{Map, Value};

use super::{EndReason, Episode, FAULT, ReplyFailure};
use burnish_reward::Conversation;
use burnish_reward::reward_error::{RewardError, RewardFailure};
use burnish_rollout::Response;

impl Episode {
    /// Returns the response for training: all ids, with a log-probability of 0 for tokens that the model did not sample.
    pub fn response(&self) -> Response {
        Response {
            ids: self.ids.clone(),
            log_probs: self.log_probs.clone(),
            rollout_log_probs: self.rollout_log_probs.clone(),
            finish: self.finish,
        }
    }

    /// Returns the sum of the rewards from tools, users and environments.
    pub fn earned(&self) -> f64 {
        self.rewards.iter().map(|reward| reward.value).sum()
    }

    fn rewards_of(&self, tools: bool) -> Vec<f64> {
        self.rewards.iter().filter(|reward| reward.of_tool == tools).map(|reward| reward.value).collect()
    }
}

/// Returns the failure of an environment, user or loop, which leaves nothing to score; otherwise the score of a loop that scores
/// itself. `extra` is [`Episode::extra`].
pub(super) fn verdict(end: EndReason, extra: &Map<String, Value>, score: Option<f64>) -> Option<Result<f64, RewardError>> {
    failure(end, extra).map(Err).or(score.map(Ok))
}

fn failure(end: EndReason, extra: &Map<String, Value>) -> Option<RewardError> {
    let fault = extra.get(FAULT).filter(|fault| !fault.is_null());
    if !(end == EndReason::Failed || end == EndReason::Timeout && fault.is_some()) {
        return None;
    }
    let failure = fault.and_then(|fault| fault["trouble"].as_str());
    let is = |kind: ReplyFailure| failure == Some(kind.name());
    let kind = match end {
        EndReason::Timeout => RewardFailure::Timeout,
        _ if is(ReplyFailure::Timeout) => RewardFailure::Timeout,
        _ if is(ReplyFailure::Died) => RewardFailure::Crash,
        _ => RewardFailure::Exception,
    };
    let message = match fault {
        None => "its loop gave no reason".to_owned(),
        Some(Value::String(message)) => message.clone(),
        Some(fault) => fault["message"].as_str().map_or_else(|| fault.to_string(), str::to_owned),
    };
    Some(RewardError { kind, message })
}

impl Conversation for Episode {
    fn messages(&self) -> &[Value] {
        &self.messages
    }

    fn prompt_len(&self) -> usize {
        self.prompt_messages
    }

    fn tokens_only(&self) -> bool {
        self.tokens_only
    }

    fn num_turns(&self) -> usize {
        self.num_turns()
    }

    fn tool_rewards(&self) -> Vec<f64> {
        self.rewards_of(true)
    }

    fn turn_scores(&self) -> Vec<f64> {
        self.rewards_of(false)
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
    use burnish_rollout::Finish;

    fn ended(end: EndReason, fault: Value, score: Option<f64>) -> Option<Result<f64, (RewardFailure, String)>> {
        let episode = Episode {
            prompt: vec![1],
            ids: vec![],
            sampled: vec![],
            log_probs: vec![],
            rollout_log_probs: vec![],
            finish: Finish::Stop,
            end,
            messages: vec![],
            prompt_messages: 0,
            tools: vec![],
            tokens_only: false,
            assistant_turns: 1,
            user_turns: 0,
            calls: vec![],
            rewards: vec![],
            score,
            extra: Map::from_iter([(FAULT.to_owned(), fault)]),
            unreadable_calls: 0,
            dropped_calls: 0,
            waited: 0.0,
        };
        episode.verdict().map(|verdict| verdict.map_err(|failure| (failure.kind, failure.message)))
    }

    #[test]
    fn a_failure_is_no_score() {
        let failure = |kind, message: &str| Some(Err((kind, message.to_owned())));
        assert_eq!(ended(EndReason::Answer, Value::Null, None), None);
        assert_eq!(ended(EndReason::Done, Value::Null, Some(0.5)), Some(Ok(0.5)));
        assert_eq!(ended(EndReason::Failed, json!("lost"), Some(0.0)), failure(RewardFailure::Exception, "lost"));
        assert_eq!(ended(EndReason::Failed, Value::Null, None), failure(RewardFailure::Exception, "its loop gave no reason"));
        let died = json!({"trouble": "died", "message": "env.py: killed"});
        assert_eq!(ended(EndReason::Failed, died, None), failure(RewardFailure::Crash, "env.py: killed"));
        assert_eq!(ended(EndReason::Timeout, json!("60 s"), None), failure(RewardFailure::Timeout, "60 s"));
        // Only tools exceeded the time limit: the conversation so far is scored.
        assert_eq!(ended(EndReason::Timeout, Value::Null, None), None);
    }
}
