//! The served turns of one conversation: a tree, because a program may repeat a request or go back and change it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::messages::{is_same, memory_of};
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
        let bytes = size_of::<Self>() + size_of::<TurnNode>() + self.messages.iter().map(memory_of).sum::<usize>();
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
#[derive(Clone, Default)]
pub(crate) struct TurnTree {
    nodes: Vec<TurnNode>,
}

impl TurnTree {
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
        let messages = messages + turn.messages.len();
        self.nodes.push(TurnNode { turn: Arc::new(turn), tokens, messages, continued: false });
        size
    }

    /// Returns the turn whose conversation is the longest prefix of these ids.
    pub(crate) fn by_ids(&self, ids: &[u32]) -> Option<Parent> {
        let (mut common, mut best) = (Vec::with_capacity(self.nodes.len()), None::<usize>);
        for (i, node) in self.nodes.iter().enumerate() {
            let ServedTurn { after, context, response, .. } = &*node.turn;
            let before: (usize, usize) = after.map_or((0, 0), |after| (after.tokens, common[after.turn]));
            let (from, same) = before;
            let equal = |(known, new): &(&u32, &u32)| known == new;
            let rest = || context.iter().chain(&response.ids).zip(ids.get(from..).unwrap_or_default()).take_while(equal).count();
            common.push(if same >= from { from + rest() } else { same });
            let is_longer = best.is_none_or(|best| self.nodes[best].tokens <= node.tokens);
            if common[i] == node.tokens && is_longer {
                best = Some(i);
            }
        }
        best.map(|turn| Parent { turn, tokens: self.nodes[turn].tokens, messages: self.nodes[turn].messages })
    }

    /// Returns the turn whose conversation is the longest proper prefix of these messages.
    pub(crate) fn by_messages(&self, messages: &[Value], setting: u64) -> Option<Parent> {
        let (mut common, mut best) = (Vec::with_capacity(self.nodes.len()), None::<usize>);
        for (i, node) in self.nodes.iter().enumerate() {
            let before: (usize, usize) = node.turn.after.map_or((0, 0), |after| (after.messages, common[after.turn]));
            let (from, same) = before;
            let equal = |(known, new): &(&Value, &Value)| is_same(known, new);
            let rest = || node.turn.messages.iter().zip(messages.get(from..).unwrap_or_default()).take_while(equal).count();
            common.push(if same >= from { from + rest() } else { same });
            let is_longer = best.is_none_or(|best| self.nodes[best].messages <= node.messages);
            let is_part = common[i] == node.messages && node.messages < messages.len() && node.messages > 0;
            if is_part && is_longer && node.turn.setting == setting {
                best = Some(i);
            }
        }
        best.map(|turn| Parent { turn, tokens: self.nodes[turn].tokens, messages: self.nodes[turn].messages })
    }

    /// Returns the number of tokens of the first request of a turn's conversation.
    pub(super) fn prompt(&self, turn: usize) -> usize {
        let mut first = turn;
        while let Some(after) = self.nodes.get(first).and_then(|node| node.turn.after) {
            first = after.turn;
        }
        self.nodes.get(first).map_or(0, |node| node.turn.context.len())
    }

    /// Returns the conversation up to the end of a turn.
    pub(super) fn trajectory(&self, turn: usize) -> Option<Trajectory> {
        let mut path = Vec::new();
        let mut next = Some(turn);
        while let Some(node) = next.and_then(|turn| self.nodes.get(turn)) {
            next = node.turn.after.map(|after| after.turn);
            path.push(&*node.turn);
        }
        let (first, last) = (*path.last()?, *path.first()?);
        let prompt = first.context.len();
        // The last message of a turn is the model's.
        let prompt_messages = first.messages.len().saturating_sub(1);
        let tokens = ConversationTokens::new(first.context.clone());
        let mut trajectory = Trajectory { tokens, finish: last.response.finish, messages: Vec::new(), prompt_messages };
        for turn in path.into_iter().rev() {
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
