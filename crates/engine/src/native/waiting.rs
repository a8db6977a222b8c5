//! Admission queue: new sequences (equal prompts are prefilled once) and paused ones that resume.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use burnish_model::kv_cache::BlockTable;
use burnish_rollout::{Arrival, TurnRequest};

/// New sequences with the same prompt.
pub(crate) struct NewPrompt {
    pub ids: Arc<[u32]>,
    pub sequences: VecDeque<(usize, TurnRequest)>,
}

/// A sequence between two turns.
pub(crate) struct PausedSequence {
    pub table: BlockTable,
    /// Tokens whose keys and values the blocks hold.
    pub ids: Vec<u32>,
}

/// Sequences that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    /// New sequences.
    pub new: VecDeque<NewPrompt>,
    /// Sequences whose blocks are in the cache, and the turns that they wait to begin.
    pub resuming: VecDeque<(usize, PausedSequence, TurnRequest)>,
    /// Sequences between two turns, which may resume or end.
    pub(crate) paused: HashMap<usize, PausedSequence>,
    /// Number of sequences that have begun and are not over.
    pub open: usize,
}

impl NewPrompt {
    /// Returns the number of most probable tokens to score at each token of the prompt; `None` if no sequence wants scores of it.
    pub(super) fn scored(&self) -> Option<usize> {
        self.sequences.iter().filter_map(|(_, turn)| turn.scores.prompt).max()
    }

    /// Removes the sequences for which `leaves` is true, and returns them with their turns.
    pub(super) fn remove(&mut self, leaves: impl Fn(&TurnRequest) -> bool) -> Vec<(usize, TurnRequest)> {
        let (left, stay) = std::mem::take(&mut self.sequences).into_iter().partition(|(_, turn)| leaves(turn));
        self.sequences = stay;
        Vec::from(left)
    }
}

impl Waiting {
    /// Handles an arrival. Returns the blocks of a sequence that is over.
    pub(super) fn take_in(&mut self, Arrival { sequence, turn }: Arrival) -> Option<BlockTable> {
        let paused = self.paused.remove(&sequence);
        let Some(turn) = turn else {
            self.open -= usize::from(paused.is_some());
            return paused.map(|paused| paused.table);
        };
        match (paused, self.new.back_mut()) {
            // The scores of a prompt need its hidden states, and a turn without tokens ends after its prompt: both are computed again.
            (Some(paused), _) if turn.scores.prompt.is_some() || turn.sampling.max_tokens == 0 => {
                self.open -= 1;
                self.new.push_back(NewPrompt { ids: turn.ids.clone(), sequences: [(sequence, turn)].into() });
                return Some(paused.table);
            }
            (Some(paused), _) => self.resuming.push_back((sequence, paused, turn)),
            (None, Some(last)) if Arc::ptr_eq(&last.ids, &turn.ids) || last.ids == turn.ids => {
                last.sequences.push_back((sequence, turn));
            }
            (None, _) => self.new.push_back(NewPrompt { ids: turn.ids.clone(), sequences: [(sequence, turn)].into() }),
        }
        None
    }

    /// Removes the cancelled turns, and returns their sequences; sequences whose blocks are in the cache are paused.
    pub(super) fn cancelled(&mut self) -> Vec<usize> {
        let mut left = Vec::new();
        let mut stays = |sequence: usize, turn: &TurnRequest| {
            let is_cancelled = turn.is_cancelled();
            left.extend(is_cancelled.then_some(sequence));
            !is_cancelled
        };
        self.new.iter_mut().for_each(|beginning| beginning.sequences.retain(|(sequence, turn)| stays(*sequence, turn)));
        self.new.retain(|beginning| !beginning.sequences.is_empty());
        for (sequence, paused, turn) in std::mem::take(&mut self.resuming) {
            match stays(sequence, &turn) {
                true => self.resuming.push_back((sequence, paused, turn)),
                false => _ = self.paused.insert(sequence, paused),
            }
        }
        left
    }
}
