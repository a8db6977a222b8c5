//! The layout of sequences in the rows of a pass: one after another without padding, with shared tokens stored once.

use std::ops::Range;
use std::sync::Arc;

use super::prepared::LayoutCache;

/// The variants of attention softmax(q·kᵀ·scale)·v.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionScoring {
    /// Factor on q·k; 1/√d in most families.
    pub scale: f32,
    /// Scores become cap·tanh(score / cap) (Gemma 2).
    pub softcap: Option<f32>,
    /// Sliding window: the number of latest keys that a query sees, including its own; all of them if `None`.
    pub window: Option<usize>,
}

/// Consecutive rows, and the rows that precede them in the same sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// The rows of the shared prefix; empty for a sequence without one.
    pub stem: Range<usize>,
    /// The segment's rows. Their queries see the whole stem and the segment's earlier rows.
    pub rows: Range<usize>,
}

impl Segment {
    /// The number of keys, the stem's and its own: the length of the sequence so far.
    pub fn keys(&self) -> usize {
        self.stem.len() + self.rows.len()
    }
}

/// A shared prefix and its continuations. One backward task works on a whole tree, since the gradients meet in the stem.
pub type Segments = Vec<Segment>;

/// The layout of a micro-batch: rows 0..n, each in exactly one segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed {
    pub trees: Vec<Segments>,
    rows: usize,
    /// Values that backends have prepared for this layout.
    pub(super) prepared: LayoutCache,
}

impl Packed {
    /// Adds a stem of `stem` rows, followed by continuations of the given lengths; returns the first row.
    ///
    /// # Panics
    /// If the stem is empty.
    pub fn push(&mut self, stem: usize, branches: &[usize]) -> usize {
        assert!(stem > 0, "a sequence needs at least one token");
        self.prepared = LayoutCache::default();
        let first = self.rows;
        let shared = first..first + stem;
        self.rows += stem;
        let mut tree = vec![Segment { stem: first..first, rows: shared.clone() }];
        for &len in branches {
            tree.push(Segment { stem: shared.clone(), rows: self.rows..self.rows + len });
            self.rows += len;
        }
        self.trees.push(tree);
        first
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.trees.iter().flatten()
    }

    /// The position of each row in its sequence.
    pub fn positions(&self) -> Vec<usize> {
        self.segments().flat_map(|s| s.stem.len()..s.keys()).collect()
    }
}

/// The rows that each row sees, and the scoring of q·kᵀ.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub packed: Arc<Packed>,
    pub scoring: AttentionScoring,
}
