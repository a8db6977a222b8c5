//! What reward functions see of a conversation of many turns, beside its text.

use serde_json::{Map, Value};

use super::failure::Failure;

/// A conversation that a response is.
pub trait Conversation: Sync {
    /// All messages, the prompt's first.
    fn messages(&self) -> &[Value];

    /// The number of messages that the prompt has.
    fn asked(&self) -> usize;

    /// True if the text between the turns is known as tokens only; messages of the user have it then, with the words of the template.
    fn tokens_only(&self) -> bool;

    /// The number of turns, as verl counts them: those of the model, of tools and of users, and one for the prompt.
    fn num_turns(&self) -> usize;

    /// The rewards of tools, in the order in which they were earned.
    fn tool_rewards(&self) -> Vec<f64>;

    /// The rewards of users and environments, in the order in which they were earned.
    fn turn_scores(&self) -> Vec<f64>;

    /// What else the conversation has for reward functions, by name.
    fn extra(&self) -> &Map<String, Value>;

    /// The score that the conversation gave itself, or the reason why there is nothing to be scored. `None` where reward functions are to
    /// be asked.
    fn verdict(&self) -> Option<Result<f64, Failure>>;
}

/// The messages behind the prompt's, from the model's first.
pub fn completion(conversation: &dyn Conversation) -> &[Value] {
    let is_model = |message: &Value| message["role"] == "assistant";
    let behind = conversation.messages().get(conversation.asked()..).unwrap_or_default();
    let skipped = behind.iter().position(is_model).unwrap_or(0);
    &behind[skipped..]
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;
    use crate::failure::FailureKind;

    /// A conversation with one call of a tool.
    pub struct Talk {
        pub messages: Vec<Value>,
        pub asked: usize,
        pub extra: Map<String, Value>,
        /// The score, or a failure.
        pub verdict: Option<Result<f64, String>>,
    }

    impl Talk {
        pub fn new(verdict: Option<Result<f64, String>>) -> Self {
            let messages = [("user", "2*3"), ("assistant", "call"), ("tool", "6"), ("assistant", "It is 6.")];
            let messages = messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
            Self { messages, asked: 1, extra: Map::from_iter([("seen".to_owned(), json!(["6"]))]), verdict }
        }
    }

    impl Conversation for Talk {
        fn messages(&self) -> &[Value] {
            &self.messages
        }

        fn asked(&self) -> usize {
            self.asked
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

        fn verdict(&self) -> Option<Result<f64, Failure>> {
            let failure = |message: &String| Failure { kind: FailureKind::Timeout, message: message.clone() };
            self.verdict.as_ref().map(|verdict| verdict.as_ref().map(|score| *score).map_err(failure))
        }
    }

    #[test]
    fn the_completion_begins_with_the_model() {
        let asked = |asked| Talk { asked, ..Talk::new(None) };
        for (talk, first) in [(asked(1), 1), (asked(0), 1), (asked(2), 3), (asked(9), 4)] {
            assert_eq!(completion(&talk), &talk.messages[first..]);
        }
    }
}
