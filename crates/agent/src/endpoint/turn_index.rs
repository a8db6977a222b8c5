//! An index of conversations by their length and a hash: finds the longest beginnings of a request in time linear in its length,
//! for any number of conversations.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The conversations up to each turn.
#[derive(Clone)]
pub(super) struct TurnIndex(BTreeMap<(usize, u64), usize>);

impl TurnIndex {
    /// Bytes of memory for each turn, roughly.
    pub(super) const ENTRY: usize = 48;

    pub(super) fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds the conversation up to a turn. `kind` tells equal items of different kinds apart.
    pub(super) fn add<T: Hash>(&mut self, kind: u64, items: &[T], turn: usize) {
        let mut hasher = DefaultHasher::new();
        kind.hash(&mut hasher);
        items.iter().for_each(|item| item.hash(&mut hasher));
        self.0.insert((items.len(), hasher.finish()), turn);
    }

    /// Returns the turns whose conversations have the hash of a beginning of these items, the longest conversation first. Of
    /// equal conversations, the last turn is returned.
    pub(super) fn beginnings<T: Hash>(&self, kind: u64, items: &[T]) -> impl Iterator<Item = usize> {
        let (mut hasher, mut done, mut found) = (DefaultHasher::new(), 0, vec![]);
        kind.hash(&mut hasher);
        let after = |length: usize| self.0.range((length, 0)..).next().map(|((length, _), _)| *length);
        let mut next = after(0);
        while let Some(length) = next.filter(|length| *length <= items.len()) {
            items[done..length].iter().for_each(|item| item.hash(&mut hasher));
            done = length;
            found.extend(self.0.get(&(length, hasher.finish())));
            next = after(length + 1);
        }
        found.into_iter().rev()
    }
}
