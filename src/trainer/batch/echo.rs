//! The weights of tokens that the environment wrote (`algorithm.echo`), from the conversations of a batch.

use super::columns::Column;
use super::data::Batch;
use burnish_agent::Episode;
use burnish_algorithm::echo::{EchoMessage, weights};
use burnish_config::schema::EchoConfig;

const ASSISTANT: &str = "assistant";

impl Batch {
    /// Writes the weight of every token of tools, users and environments. Tokens between two turns of the model belong to the messages
    /// between them, with the words of the chat template. They have a weight if all these messages have a role of the setting.
    pub(crate) fn weigh_echo(&mut self, echo: &EchoConfig) {
        let weight_of = |role: &str| if echo.roles.iter().any(|known| known.as_str() == role) { echo.alpha } else { 0.0 };
        let mut column = Vec::with_capacity(self.columns().tokens());
        for (i, episode) in self.episodes.iter().enumerate() {
            match episode.as_deref().filter(|_| self.scores[i].score.is_some()) {
                Some(episode) => {
                    let roles = roles_between_turns(episode);
                    let messages = messages(&episode.sampled, &roles);
                    column.extend(weights(&messages, weight_of).concat().into_iter().map(|weight| weight as f32));
                }
                None => column.resize(column.len() + self.tokens(i).len(), 0.0),
            }
        }
        self.set(Column::EchoWeights, column);
    }
}

/// Returns the role of the messages after each turn of the model; empty text if they have several roles.
fn roles_between_turns(episode: &Episode) -> Vec<String> {
    let mut roles: Vec<Option<String>> = Vec::new();
    for message in &episode.messages[episode.prompt_messages.min(episode.messages.len())..] {
        let role = message["role"].as_str().unwrap_or_default();
        match (role, roles.last_mut()) {
            (ASSISTANT, _) => roles.push(None),
            (_, Some(last)) => match last {
                None => *last = Some(role.to_owned()),
                Some(known) if known == role => {}
                Some(known) => known.clear(),
            },
            (_, None) => {}
        }
    }
    roles.into_iter().map(Option::unwrap_or_default).collect()
}

/// Cuts a response into turns of the model and the tokens between them.
fn messages<'a>(sampled: &[bool], roles: &'a [String]) -> Vec<EchoMessage<'a>> {
    let mut turns = 0;
    let run = |run: &[bool]| {
        turns += usize::from(run[0]);
        let role = if run[0] { ASSISTANT } else { roles.get(turns.wrapping_sub(1)).map_or("", String::as_str) };
        EchoMessage { role, sampled: run[0], tokens: run.len(), content: None }
    };
    sampled.chunk_by(|a, b| a == b).map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_between_turns_have_the_role_of_the_messages_between_them() {
        let roles = ["tool".to_owned(), "user".to_owned()];
        let sampled = [true, true, false, false, true, false, true];
        let of = |message: EchoMessage| (message.role.to_owned(), message.sampled, message.tokens);
        let found: Vec<_> = messages(&sampled, &roles).into_iter().map(of).collect();
        let expected =
            [("assistant", true, 2), ("tool", false, 2), ("assistant", true, 1), ("user", false, 1), ("assistant", true, 1)];
        assert_eq!(found, expected.map(|(role, sampled, tokens)| (role.to_owned(), sampled, tokens)));
    }
}
