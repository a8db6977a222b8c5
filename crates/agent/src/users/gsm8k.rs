//! verl's interaction for GSM8K (`verl.interactions.gsm8k_interaction.Gsm8kInteraction` of verl up to 0.7).

use anyhow::Context;

use super::kind::UserKind;
use crate::participants::{Outcome, User, UserReply};
use crate::tools::ConversationView;
use crate::tools::built_in::marked;
use burnish_reward::gsm8k::{Method, extract_solution};
use burnish_util::python_value::text_of;

pub(super) static GSM8K: UserKind = UserKind {
    name: "gsm8k",
    class_names: &["verl.interactions.gsm8k_interaction.Gsm8kInteraction"],
    doc: "compares the answer with interaction_kwargs.ground_truth, and ends the conversation if they are equal",
    begin: |kwargs| {
        let truth = &kwargs["ground_truth"];
        let text = truth.as_str().map(str::to_owned).or_else(|| truth.is_number().then(|| text_of(truth)));
        let truth =
            text.context("the interaction needs the row's ground truth, as text: extra_info.interaction_kwargs.ground_truth")?;
        Ok(Box::new(Gsm8k { truth }))
    },
};

struct Gsm8k {
    truth: String,
}

impl User for Gsm8k {
    /// Matches verl 0.7's `generate_response`, which parses the assistant's last message by the strict method.
    fn respond(&mut self, view: &ConversationView) -> Outcome<UserReply> {
        let last = view.messages.iter().rev().find(|message| message["role"] == "assistant");
        let content = last.and_then(|message| message["content"].as_str()).unwrap_or_default();
        let is_right = extract_solution(&marked(content), Method::Strict).is_some_and(|answer| answer == self.truth);
        let text = match is_right {
            true => "Your response is correct!",
            false => "Your response is incorrect! You need to reflect on your answer and try again.",
        };
        let score = Some(if is_right { 1.0 } else { 0.0 });
        Ok(Ok(UserReply { text: text.to_owned(), ends: is_right, score, seconds: 0.0 }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_right_answer_ends_the_conversation() {
        let mut user = (GSM8K.begin)(&json!({"name": "gsm8k", "ground_truth": "72"})).unwrap();
        for (content, is_right) in
            [("72", true), ("so\n#### 72", true), ("it is 72", false), ("#### 71", false), ("72 <|im_end|>", true), ("", false)]
        {
            let messages = [json!({"role": "assistant", "content": content}), json!({"role": "tool", "content": "#### 72"})];
            let view = ConversationView { messages: &messages, user_turns: 1, ..ConversationView::EMPTY };
            let reply = user.respond(&view).unwrap().unwrap();
            assert_eq!((reply.ends, reply.score), (is_right, Some(f64::from(u8::from(is_right)))), "{content}");
            assert_eq!(reply.text.starts_with("Your response is correct!"), is_right);
        }
        assert!((GSM8K.begin)(&json!({})).is_err());
    }
}
