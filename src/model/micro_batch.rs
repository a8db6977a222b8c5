//! How a mini-batch is cut for the device: sequences of like length together, padded to the longest. Losses are normalised by
//! counts of the whole mini-batch, so a cut changes memory and speed, never the gradient.

/// The size of a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// At most this many sequences.
    Sequences(usize),
    /// At most this many tokens, padding included; a longer sequence goes alone.
    Tokens(usize),
}

impl Cut {
    /// Indices of the sequences of each micro-batch, longest first.
    pub fn micro_batches(self, lengths: &[usize]) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(lengths[i]));
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for i in order {
            let fits = |batch: &Vec<usize>| match self {
                Self::Sequences(most) => batch.len() < most,
                Self::Tokens(most) => (batch.len() + 1) * lengths[batch[0]] <= most,
            };
            match batches.last_mut() {
                Some(batch) if fits(batch) => batch.push(i),
                _ => batches.push(vec![i]),
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::Cut;

    #[test]
    fn every_sequence_once_within_the_budget() {
        let lengths = [3, 9, 4, 4, 20, 1];
        assert_eq!(Cut::Sequences(4).micro_batches(&lengths), [vec![4, 1, 2, 3], vec![0, 5]]);
        assert_eq!(Cut::Tokens(12).micro_batches(&lengths), [vec![4], vec![1], vec![2, 3, 0], vec![5]]);
        assert!(Cut::Tokens(12).micro_batches(&[]).is_empty());
    }
}
