//! Sums whose bits depend on the number of slices, never on the number of ranks.
//!
//! The slices of a mini-batch are the leaves of one binary tree: node (level, i) is the sum of (level − 1, 2i) and
//! (level − 1, 2i + 1). A rank has a range of consecutive leaves, adds whole subtrees only, and sends its few nodes (one if slices /
//! ranks is a power of two). The receiver of all nodes continues the addition on the same tree.

use std::ops::Range;

use super::slices::share;

/// A subtree: the leaves `index << level .. (index + 1) << level`, as far as they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtree {
    pub level: u32,
    pub index: usize,
}

/// A value that can be added to another one.
pub trait Add {
    /// Adds the value of the right child to the value of the left child.
    fn add(&mut self, right: Self);
}

impl Add for Vec<f32> {
    fn add(&mut self, right: Self) {
        self.iter_mut().zip(&right).for_each(|(sum, value)| *sum += value);
    }
}

/// `None` is an empty node: adding it changes nothing.
impl<T: Add> Add for Option<T> {
    fn add(&mut self, right: Self) {
        match (self.as_mut(), right) {
            (Some(left), Some(right)) => left.add(right),
            (None, right) => *self = right,
            (Some(_), None) => {}
        }
    }
}

impl Add for () {
    fn add(&mut self, (): Self) {}
}

/// Adds leaves in their order, and stores as few values as the tree allows: at most 1 + log₂ of their number.
pub struct Sum<T> {
    leaves: usize,
    nodes: Vec<(Subtree, T)>,
}

impl<T: Add> Sum<T> {
    pub fn new(leaves: usize) -> Self {
        Self { leaves, nodes: Vec::new() }
    }

    /// Adds a node. All nodes to its left that belong to this sum must be added before.
    pub fn push(&mut self, node: Subtree, value: T) {
        self.nodes.push((node, value));
        while let Some((node, value)) = self.nodes.pop() {
            let is_right = node.index % 2 == 1;
            let left = self.nodes.last_mut().filter(|(left, _)| left.level == node.level && left.index + 1 == node.index);
            let parent = Subtree { level: node.level + 1, index: node.index / 2 };
            // A left child without a sibling is its parent.
            let is_alone = !is_right && ((node.index + 1) << node.level) >= self.leaves && node.index > 0;
            match left.filter(|_| is_right) {
                Some((left, sum)) => {
                    sum.add(value);
                    *left = parent;
                }
                None if is_alone => self.nodes.push((parent, value)),
                None => {
                    self.nodes.push((node, value));
                    return;
                }
            }
        }
    }

    /// Adds the next leaf.
    pub fn push_leaf(&mut self, index: usize, value: T) {
        self.push(Subtree { level: 0, index }, value);
    }

    /// Returns the values of the remaining nodes, in the order of [`nodes_of`] their range.
    pub fn into_values(self) -> Vec<T> {
        self.nodes.into_iter().map(|(_, value)| value).collect()
    }

    /// Returns the sum of all leaves, if all of them were added here.
    pub fn whole(&self) -> Option<&T> {
        match &self.nodes[..] {
            [(_, sum)] => Some(sum),
            _ => None,
        }
    }

    /// Returns the sum of all leaves.
    ///
    /// # Panics
    /// If leaves are missing.
    pub fn total(self) -> T {
        let mut values = self.into_values();
        assert_eq!(values.len(), 1, "the tree is whole");
        values.swap_remove(0)
    }
}

/// Returns the leaves of a rank.
pub fn leaves_of(rank: usize, ranks: usize, leaves: usize) -> Range<usize> {
    share(rank, ranks, leaves)
}

/// Returns the nodes that remain after a range of leaves was added.
pub fn nodes_of(run: Range<usize>, leaves: usize) -> Vec<Subtree> {
    let mut sum = Sum::new(leaves);
    run.for_each(|index| sum.push_leaf(index, ()));
    sum.nodes.into_iter().map(|(node, ())| node).collect()
}

/// Returns the sum of all leaves from the remaining nodes of each rank, rank after rank.
pub fn join<T: Add>(nodes: &[Subtree], values: impl Iterator<Item = T>, leaves: usize) -> T {
    let mut sum = Sum::new(leaves);
    nodes.iter().zip(values).for_each(|(&node, value)| sum.push(node, value));
    sum.total()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every cut of every number of leaves gives the tree's order, even with empty leaves.
    #[test]
    fn any_number_of_ranks_gives_the_same_bits() {
        for leaves in 1..=17 {
            for missing in [usize::MAX, 0, leaves / 2, leaves - 1] {
                let leaf = |i: usize| {
                    let value = (i as f32 * 0.37).sin() * 10f32.powi((i % 7) as i32 - 3);
                    (i != missing).then(|| vec![value])
                };
                let mut sum = Sum::new(leaves);
                (0..leaves).for_each(|index| sum.push_leaf(index, leaf(index)));
                let alone = sum.total().map(|sum| sum[0].to_bits());
                for ranks in 1..=leaves + 3 {
                    let (mut nodes, mut values) = (Vec::new(), Vec::new());
                    for rank in 0..ranks {
                        let run = leaves_of(rank, ranks, leaves);
                        let mut own = Sum::new(leaves);
                        run.clone().for_each(|index| own.push_leaf(index, leaf(index)));
                        nodes.extend(nodes_of(run, leaves));
                        values.extend(own.into_values());
                    }
                    assert_eq!(nodes.len(), values.len());
                    let joined = join(&nodes, values.into_iter(), leaves);
                    assert_eq!(joined.map(|sum| sum[0].to_bits()), alone, "{leaves} leaves, {ranks} ranks");
                }
            }
        }
    }
}
