//! Division of a batch: into ranges of rows, one per rank, and into slices, whose gradients are added in a fixed order.

use std::ops::Range;

/// Division of a mini-batch into slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// `trainer.gradient_slices`: number of slices whose gradients are added. The sum depends on this number, not on the number
    /// of ranks.
    pub count: usize,
    /// `trainer.balance_batch`: slices have about as many tokens each; otherwise about as many rows.
    pub balanced: bool,
}

impl Default for Slices {
    fn default() -> Self {
        Self { count: 1, balanced: true }
    }
}

impl Slices {
    /// Cuts rows into slices: the rows of each, in ascending order; a slice may be empty. `lengths` are the tokens of each row.
    /// Rows with the same value in `groups`, such as the responses to one prompt, stay together, because they share tokens.
    pub fn cut(self, lengths: &[usize], groups: &[usize]) -> Vec<Vec<usize>> {
        if self.count == 1 {
            return vec![(0..lengths.len()).collect()];
        }
        let mut together: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut place = std::collections::HashMap::new();
        for (row, group) in groups.iter().enumerate() {
            let at = *place.entry(group).or_insert(together.len());
            if at == together.len() {
                together.push((0, Vec::new()));
            }
            together[at].0 += if self.balanced { lengths[row].max(1) } else { 1 };
            together[at].1.push(row);
        }
        // The largest group first, each to the slice with the least so far; of equal slices, the first.
        together.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
        let mut slices = vec![(0, Vec::new()); self.count];
        for (size, rows) in together {
            let min = slices.iter_mut().min_by_key(|(size, _): &&mut (usize, Vec<usize>)| *size).expect("at least one slice");
            min.0 += size;
            min.1.extend(rows);
        }
        slices.iter_mut().for_each(|(_, rows)| rows.sort_unstable());
        slices.into_iter().map(|(_, rows)| rows).collect()
    }
}

/// Returns the share of `count` consecutive items that belongs to a rank, or to another of `parts` parts.
pub(crate) fn share(part: usize, parts: usize, count: usize) -> Range<usize> {
    part * count / parts..(part + 1) * count / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_one_slice_and_groups_stay_together() {
        let lengths = [5, 3, 9, 1, 1, 7, 2, 4];
        let groups = [0, 0, 1, 2, 2, 3, 4, 4];
        assert_eq!(Slices { count: 1, balanced: true }.cut(&lengths, &groups), [(0..8).collect::<Vec<_>>()]);
        for balanced in [true, false] {
            for count in 2..7 {
                let slices = Slices { count, balanced }.cut(&lengths, &groups);
                let mut all: Vec<usize> = slices.concat();
                all.sort_unstable();
                assert_eq!(all, (0..8).collect::<Vec<_>>());
                for rows in &slices {
                    assert!(rows.is_sorted());
                    let outside = |row: usize| !rows.contains(&row) && rows.iter().any(|&own| groups[own] == groups[row]);
                    assert!(!(0..8).any(outside), "{slices:?}");
                }
            }
        }
        // 9 | 8 | 7 | 6 + 2: the smallest group joins the smallest slice.
        assert_eq!(Slices { count: 4, balanced: true }.cut(&lengths, &groups), [vec![2], vec![0, 1], vec![5], vec![3, 4, 6, 7]]);
    }

    #[test]
    fn shares_are_whole_and_even() {
        for parts in 1..6 {
            for count in 0..20 {
                let shares: Vec<Range<usize>> = (0..parts).map(|part| share(part, parts, count)).collect();
                assert_eq!(shares.iter().cloned().flatten().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
                let sizes = || shares.iter().map(Range::len);
                assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
            }
        }
    }
}
