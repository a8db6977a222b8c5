//! The rows of a pass sorted by expert: every row goes to k experts, and the rows of one expert are neighbours.

use std::ops::Range;

/// A division of rows among experts. A *slot* is one of the k experts of a row; slots are numbered row · k + j. A *place* is the
/// position of a slot after sorting by expert; slots of one expert stay in the order of their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The number of experts of a row.
    pub k: usize,
    /// The expert of each slot.
    pub experts: Vec<u32>,
    /// The place of each slot.
    pub(super) places: Vec<usize>,
    /// The slot at each place.
    pub(super) slots: Vec<usize>,
    /// The first place of each expert, and the number of places.
    starts: Vec<usize>,
}

impl Groups {
    /// Sorts slots by their experts, each below `count`.
    ///
    /// # Panics
    /// If an expert is not below `count`, or the number of slots is not a multiple of k.
    pub fn new(experts: Vec<u32>, k: usize, count: usize) -> Self {
        assert!(experts.len().is_multiple_of(k), "{} slots of {k} per row", experts.len());
        let mut starts = vec![0; count + 1];
        experts.iter().for_each(|expert| starts[*expert as usize + 1] += 1);
        for expert in 0..count {
            starts[expert + 1] += starts[expert];
        }
        let (mut next, mut slots) = (starts.clone(), vec![0; experts.len()]);
        let place = |(slot, expert): (usize, &u32)| {
            let place = next[*expert as usize];
            next[*expert as usize] += 1;
            slots[place] = slot;
            place
        };
        let places = experts.iter().enumerate().map(place).collect();
        Self { k, experts, places, slots, starts }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.experts.len() / self.k
    }

    /// The experts with at least one row, and their places.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        (0..self.starts.len() - 1).map(|expert| (expert, self.places_of(expert))).filter(|(_, places)| !places.is_empty())
    }

    /// The number of rows of each expert.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.starts.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// The expert at each place.
    pub(crate) fn expert_of_places(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(|slot| self.experts[*slot] as usize)
    }

    fn places_of(&self, expert: usize) -> Range<usize> {
        self.starts[expert]..self.starts[expert + 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_an_expert_are_neighbours_in_the_order_of_rows() {
        let groups = Groups::new(vec![2, 0, 0, 3, 2, 0], 2, 5);
        assert_eq!(groups.used().collect::<Vec<_>>(), [(0, 0..3), (2, 3..5), (3, 5..6)]);
        assert_eq!(groups.slots, [1, 2, 5, 0, 4, 3]);
        assert!(groups.places.iter().enumerate().all(|(slot, place)| groups.slots[*place] == slot));
        assert_eq!((groups.rows(), groups.counts().collect::<Vec<_>>()), (3, vec![3, 0, 2, 1, 0]));
    }
}
