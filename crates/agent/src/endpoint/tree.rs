//! The served turns of one conversation: a tree, because a program may repeat a request or go back and change it.

use std::iter::successors;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::messages::{MessageIdentity, identity, memory_of};
use super::turn_index::TurnIndex;
use crate::tokens::{Appended, ConversationTokens};
use burnish_rollout::{Finish, Response};

/// The bytes of messages that count as one token. A sampled token takes 12 bytes.
pub(super) const BYTES_PER_TOKEN: usize = 16;

/// The tokens of a conversation from its beginning to a turn without successor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// The first request as the prompt; then sampled turns, and the text of later requests between them.
    #[serde(flatten)]
    pub tokens: ConversationTokens,
    /// The finish of the last turn.
    pub finish: Finish,
    /// The messages, the model's last; empty for text completions.
    pub messages: Vec<Value>,
    /// The number of messages of the first request.
    #[serde(default, rename = "asked")]
    pub prompt_messages: usize,
}

/// A served turn.
#[derive(Clone, Debug)]
pub(crate) struct ServedTurn {
    /// The turn before, and the numbers of tokens and messages that stay of the conversation up to it.
    pub after: Option<Parent>,
    /// The ids between the turn before and the sampled ids.
    pub context: Vec<u32>,
    pub response: Response,
    /// The messages after the turn before, including the model's.
    pub messages: Vec<Value>,
    /// A hash of the request's tools and template variables.
    pub setting: u64,
}

impl ServedTurn {
    /// Returns the size in tokens; the bytes of messages are counted as tokens, too.
    fn size(&self) -> usize {
        let own = size_of::<Self>() + size_of::<TurnNode>() + 2 * TurnIndex::ENTRY;
        let bytes = own + self.messages.iter().map(memory_of).sum::<usize>();
        self.context.len() + self.response.ids.len() + bytes.div_ceil(BYTES_PER_TOKEN)
    }
}

/// A turn that another one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    pub turn: usize,
    pub tokens: usize,
    pub messages: usize,
}

/// A turn, and the numbers of tokens and messages up to its end.
#[derive(Clone)]
struct TurnNode {
    turn: Arc<ServedTurn>,
    tokens: usize,
    messages: usize,
    continued: bool,
}

/// The turns of a conversation; each is after the turn that it continues. Copies share the turns.
#[derive(Clone)]
pub(crate) struct TurnTree {
    nodes: Vec<TurnNode>,
    by_ids: TurnIndex,
    by_messages: TurnIndex,
}

impl TurnTree {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), by_ids: TurnIndex::new(), by_messages: TurnIndex::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a turn, and returns its size as [`ServedTurn::size`] counts it.
    pub(super) fn add(&mut self, turn: ServedTurn) -> usize {
        let size = turn.size();
        let (tokens, messages) = turn.after.map_or((0, 0), |after| (after.tokens, after.messages));
        if let Some(before) = turn.after.and_then(|after| self.nodes.get_mut(after.turn)) {
            before.continued = true;
        }
        let tokens = tokens + turn.context.len() + turn.response.ids.len();
        let (messages, setting) = (messages + turn.messages.len(), turn.setting);
        let added = self.nodes.len();
        self.nodes.push(TurnNode { turn: Arc::new(turn), tokens, messages, continued: false });
        self.by_ids.add(0, &self.ids(added), added);
        self.by_messages.add(setting, &self.identities(added), added);
        size
    }

    /// Returns the turn whose conversation is the longest prefix of these ids.
    pub(crate) fn by_ids(&self, ids: &[u32]) -> Option<Parent> {
        self.by_ids.beginnings(0, ids).find(|turn| ids.starts_with(&self.ids(*turn))).map(|turn| self.parent(turn))
    }

    /// Returns the turn whose conversation is the longest proper prefix of these messages.
    pub(crate) fn by_messages(&self, messages: &[Value], setting: u64) -> Option<Parent> {
        let (_, before) = messages.split_last()?;
        let before: Vec<MessageIdentity> = before.iter().map(identity).collect();
        let mut turns = self.by_messages.beginnings(setting, &before);
        let is_part = |turn: &usize| {
            let node = &self.nodes[*turn];
            node.messages > 0 && node.turn.setting == setting && before.starts_with(&self.identities(*turn))
        };
        turns.find(is_part).map(|turn| self.parent(turn))
    }

    fn parent(&self, turn: usize) -> Parent {
        Parent { turn, tokens: self.nodes[turn].tokens, messages: self.nodes[turn].messages }
    }

    /// Returns the turns of a conversation up to a turn, the first turn first.
    fn path(&self, turn: usize) -> Vec<&ServedTurn> {
        let before = |node: &&TurnNode| node.turn.after.and_then(|after| self.nodes.get(after.turn));
        let mut path: Vec<_> = successors(self.nodes.get(turn), before).map(|node| &*node.turn).collect();
        path.reverse();
        path
    }

    /// Returns the ids of a conversation up to the end of a turn.
    fn ids(&self, turn: usize) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.nodes[turn].tokens);
        for turn in self.path(turn) {
            ids.truncate(turn.after.map_or(0, |after| after.tokens));
            ids.extend(turn.context.iter().chain(&turn.response.ids));
        }
        ids
    }

    /// Returns the identities of the messages of a conversation up to the end of a turn.
    fn identities(&self, turn: usize) -> Vec<MessageIdentity> {
        let mut messages = Vec::with_capacity(self.nodes[turn].messages);
        for turn in self.path(turn) {
            messages.truncate(turn.after.map_or(0, |after| after.messages));
            messages.extend(&turn.messages);
        }
        messages.into_iter().map(identity).collect()
    }

    /// Returns the number of tokens of the first request of a turn's conversation.
    pub(super) fn prompt(&self, turn: usize) -> usize {
        self.path(turn).first().map_or(0, |first| first.context.len())
    }

    /// Returns the conversation up to the end of a turn.
    pub(super) fn trajectory(&self, turn: usize) -> Option<Trajectory> {
        let path = self.path(turn);
        let (first, last) = (*path.first()?, *path.last()?);
        let prompt = first.context.len();
        // The last message of a turn is the model's.
        let prompt_messages = first.messages.len().saturating_sub(1);
        let tokens = ConversationTokens::new(first.context.clone());
        let mut trajectory = Trajectory { tokens, finish: last.response.finish, messages: Vec::new(), prompt_messages };
        for turn in path {
            if let Some(after) = turn.after {
                trajectory.tokens.truncate(after.tokens.saturating_sub(prompt));
                trajectory.tokens.apply(&Appended { remove: 0, ids: turn.context.clone() });
                trajectory.messages.truncate(after.messages);
            }
            trajectory.tokens.push_turn(&turn.response);
            trajectory.messages.extend_from_slice(&turn.messages);
        }
        Some(trajectory)
    }

    /// Returns the conversations up to every turn without successor, in the order of serving. Each has its own copy of a shared
    /// beginning.
    pub(super) fn trajectories(&self) -> impl Iterator<Item = Trajectory> {
        let ends = self.nodes.iter().enumerate().filter(|(_, node)| !node.continued);
        ends.filter_map(|(turn, _)| self.trajectory(turn))
    }
}

#[cfg(test)]
mod tests {
    use burnish_util::rng::Stream;
    use serde_json::json;

    use super::*;

    /// The index finds the turn that a search through all turns finds.
    #[test]
    fn the_longest_beginning_is_found_among_many() {
        let mut random = Stream::new(7, "turns", &[]);
        let mut few = |below: usize| random.below(below);
        let mut tree = TurnTree::new();
        for number in 0..400 {
            let after = (number > 0 && few(4) > 0)
                .then(|| tree.parent(few(number)))
                .map(|parent| Parent { tokens: parent.tokens - few(2).min(parent.tokens), ..parent });
            let mut ids = |most: usize| (0..few(most)).map(|_| few(3) as u32).collect::<Vec<_>>();
            let (context, sampled) = (ids(3), ids(4));
            let messages = (0..few(3)).map(|_| json!({"role": "user", "content": few(3).to_string()})).collect();
            let log_probs = vec![0.0; sampled.len()];
            let response = Response { ids: sampled, rollout_log_probs: log_probs.clone(), log_probs, finish: Finish::Stop };
            tree.add(ServedTurn { after, context, response, messages, setting: few(2) as u64 });
        }
        let all = 0..tree.len();
        for turn in all.clone() {
            let ids = [tree.ids(turn), vec![few(3) as u32]].concat();
            let expected =
                all.clone().filter(|turn| ids.starts_with(&tree.ids(*turn))).max_by_key(|turn| tree.nodes[*turn].tokens);
            assert_eq!(tree.by_ids(&ids), expected.map(|turn| tree.parent(turn)));
            let whole = tree.trajectory(turn).unwrap().messages;
            let (sent, setting): (Vec<_>, _) = (whole.iter().map(identity).collect(), few(2) as u64);
            let is_part = |turn: &usize| {
                let node = &tree.nodes[*turn];
                node.messages > 0
                    && node.messages < sent.len()
                    && node.turn.setting == setting
                    && sent.starts_with(&tree.identities(*turn))
            };
            let expected = all.clone().filter(is_part).max_by_key(|turn| tree.nodes[*turn].messages);
            assert_eq!(tree.by_messages(&whole, setting), expected.map(|turn| tree.parent(turn)));
        }
    }
}
