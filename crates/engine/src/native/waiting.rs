//! Sequences that wait for a place: new ones, of which those with equal tokens are prefilled once, and those that go on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use burnish_model::kv_cache::BlockTable;
use burnish_rollout::{Arrival, TurnRequest};

/// New sequences that begin with the same tokens.
pub struct Beginning {
    pub ids: Arc<[u32]>,
    pub sequences: VecDeque<(usize, TurnRequest)>,
}

/// A sequence between two turns.
pub struct Parked {
    pub table: BlockTable,
    /// The tokens whose keys and values the blocks hold.
    pub ids: Vec<u32>,
}

/// The sequences that wait.
#[derive(Default)]
pub struct Waiting {
    /// New sequences.
    pub new: VecDeque<Beginning>,
    /// Sequences whose blocks are in the cache, and the turns that they wait to begin.
    pub going_on: VecDeque<(usize, Parked, TurnRequest)>,
    /// Sequences that nothing is known of but that they may go on.
    pub parked: HashMap<usize, Parked>,
    /// The number of sequences that were begun and are not over.
    pub open: usize,
}

impl Waiting {
    /// Takes news in. Returns the blocks of a sequence that is over.
    pub fn take_in(&mut self, Arrival { sequence, turn }: Arrival) -> Option<BlockTable> {
        let parked = self.parked.remove(&sequence);
        let Some(turn) = turn else {
            self.open -= usize::from(parked.is_some());
            return parked.map(|parked| parked.table);
        };
        match (parked, self.new.back_mut()) {
            (Some(parked), _) => self.going_on.push_back((sequence, parked, turn)),
            (None, Some(last)) if Arc::ptr_eq(&last.ids, &turn.ids) || last.ids == turn.ids => {
                last.sequences.push_back((sequence, turn));
            }
            (None, _) => self.new.push_back(Beginning { ids: turn.ids.clone(), sequences: [(sequence, turn)].into() }),
        }
        None
    }

    /// Takes out the turns that nobody waits for any more, and returns their sequences; those whose blocks are in the cache are parked.
    pub fn cancelled(&mut self) -> Vec<usize> {
        let mut left = Vec::new();
        let mut stays = |sequence: usize, turn: &TurnRequest| {
            let is_cancelled = turn.is_cancelled();
            left.extend(is_cancelled.then_some(sequence));
            !is_cancelled
        };
        self.new.iter_mut().for_each(|beginning| beginning.sequences.retain(|(sequence, turn)| stays(*sequence, turn)));
        self.new.retain(|beginning| !beginning.sequences.is_empty());
        for (sequence, parked, turn) in std::mem::take(&mut self.going_on) {
            match stays(sequence, &turn) {
                true => self.going_on.push_back((sequence, parked, turn)),
                false => _ = self.parked.insert(sequence, parked),
            }
        }
        left
    }
}
