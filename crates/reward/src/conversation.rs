//! Parts of a multi-turn conversation that reward functions can read in addition to its text.

use serde_json::{Map, Value};

use super::reward_error::RewardError;

/// A response that is a conversation.
pub trait Conversation: Sync {
    /// Returns all messages, the prompt's first.
    fn messages(&self) -> &[Value];

    /// Returns the number of messages in the prompt.
    fn prompt_len(&self) -> usize;

    /// Returns true if the text between the turns is known as tokens only. User messages then hold that text, with the template's
    /// words.
    fn tokens_only(&self) -> bool;

    /// Returns the number of turns, counted as in verl: turns of the model, of tools and of users, and one for the prompt.
    fn num_turns(&self) -> usize;

    /// Returns the rewards of tools, in the order in which they were earned.
    fn tool_rewards(&self) -> Vec<f64>;

    /// Returns the rewards of users and environments, in the order in which they were earned.
    fn turn_scores(&self) -> Vec<f64>;

    /// Returns further values for reward functions, by name.
    fn extra(&self) -> &Map<String, Value>;

    /// Returns the score that the conversation returned, or the reason why it cannot be scored. `None` if reward functions have
    /// to score it.
    fn verdict(&self) -> Option<Result<f64, RewardError>>;
}

/// Returns the messages after the prompt, starting with the model's first.
pub fn completion(conversation: &dyn Conversation) -> &[Value] {
    let is_model = |message: &Value| message["role"] == "assistant";
    let rest = conversation.messages().get(conversation.prompt_len()..).unwrap_or_default();
    let skipped = rest.iter().position(is_model).unwrap_or(0);
    &rest[skipped..]
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::reward_error::RewardFailure;

    /// A conversation with one call of a tool.
    pub(crate) struct TestConversation {
        pub messages: Vec<Value>,
        pub prompt_len: usize,
        pub extra: Map<String, Value>,
        /// The score, or a failure.
        pub verdict: Option<Result<f64, String>>,
    }

    impl TestConversation {
        pub(crate) fn new(verdict: Option<Result<f64, String>>) -> Self {
            let messages = [("user", "2*3"), ("assistant", "call"), ("tool", "6"), ("assistant", "It is 6.")];
            let messages = messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
            Self { messages, prompt_len: 1, extra: Map::from_iter([("seen".to_owned(), json!(["6"]))]), verdict }
        }
    }

    impl Conversation for TestConversation {
        fn messages(&self) -> &[Value] {
            &self.messages
        }

        fn prompt_len(&self) -> usize {
            self.prompt_len
        }

        fn tokens_only(&self) -> bool {
            false
        }

        fn num_turns(&self) -> usize {
            4
        }

        fn tool_rewards(&self) -> Vec<f64> {
            vec![0.25]
        }

        fn turn_scores(&self) -> Vec<f64> {
            vec![]
        }

        fn extra(&self) -> &Map<String, Value> {
            &self.extra
        }

        fn verdict(&self) -> Option<Result<f64, RewardError>> {
            let failure = |message: &String| RewardError { kind: RewardFailure::Timeout, message: message.clone() };
            self.verdict.as_ref().map(|verdict| verdict.as_ref().map(|score| *score).map_err(failure))
        }
    }

    #[test]
    fn the_completion_begins_with_the_model() {
        let with_prompt = |prompt_len| TestConversation { prompt_len, ..TestConversation::new(None) };
        for (talk, first) in [(with_prompt(1), 1), (with_prompt(0), 1), (with_prompt(2), 3), (with_prompt(9), 4)] {
            assert_eq!(completion(&talk), &talk.messages[first..]);
        }
    }
}
