//! Cuts a mini-batch into micro-batches for the device. Losses are normalised by counts of the whole mini-batch, so the cut
//! changes memory and speed, never the gradient. Rows are packed, so lengths may be mixed. Responses to one prompt stay together:
//! the prompt then goes through the trunk once for all of them.

use std::collections::HashMap;

use super::sequence::Sequence;

/// The size of a micro-batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// At most this many sequences.
    Sequences(usize),
    /// At most this many tokens, prompts included for each sequence. A longer sequence gets its own micro-batch.
    Tokens(usize),
}

impl Cut {
    /// Indices of the sequences of each micro-batch. Sequences with the same prompt are neighbours.
    pub fn micro_batches(self, sequences: &[Sequence]) -> Vec<Vec<usize>> {
        let alone: Vec<&[Sequence]> = sequences.iter().map(std::slice::from_ref).collect();
        self.micro_batches_of(&alone)
    }

    /// Like [`micro_batches_of`](Self::micro_batches_of), for the `chosen` units only. Indices are those among all units.
    pub fn micro_batches_within<'a>(self, units: &[impl AsRef<[Sequence<'a>]>], chosen: &[usize]) -> Vec<Vec<usize>> {
        let chosen_units: Vec<&[Sequence]> = chosen.iter().map(|&i| units[i].as_ref()).collect();
        self.micro_batches_of(&chosen_units).into_iter().map(|micro| micro.into_iter().map(|at| chosen[at]).collect()).collect()
    }

    /// Like [`micro_batches`](Self::micro_batches), for units of sequences that stay together, such as the two responses of a
    /// preference pair. Returns the indices of the units; [`Cut::Sequences`] counts units.
    pub fn micro_batches_of<'a>(self, units: &[impl AsRef<[Sequence<'a>]>]) -> Vec<Vec<usize>> {
        let units: Vec<&[Sequence]> = units.iter().map(AsRef::as_ref).collect();
        let mut first: HashMap<&[u32], usize> = HashMap::new();
        let prompt = |unit: &[Sequence<'a>]| unit.first().map_or(&[][..], |sequence| sequence.prompt);
        let mut order: Vec<(usize, usize)> =
            units.iter().enumerate().map(|(i, unit)| (*first.entry(prompt(unit)).or_insert(i), i)).collect();
        order.sort_unstable();
        let (mut batches, mut tokens): (Vec<Vec<usize>>, usize) = (Vec::new(), 0);
        for (_, i) in order {
            let length: usize = units[i].iter().map(Sequence::len).sum();
            tokens += length;
            let fits = |batch: &Vec<usize>| match self {
                Self::Sequences(max) => batch.len() < max,
                Self::Tokens(max) => tokens <= max,
            };
            match batches.last_mut() {
                Some(batch) if fits(batch) => batch.push(i),
                _ => {
                    tokens = length;
                    batches.push(vec![i]);
                }
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_once_within_the_budget_and_prompts_together() {
        let (a, b, response) = ([1, 2], [3], [7; 30]);
        let sequences = [(&a[..], 1), (&b[..], 8), (&a[..], 2), (&b[..], 3), (&b[..], 19)];
        let sequences = sequences.map(|(prompt, len)| Sequence::new(prompt, &response[..len]));
        assert_eq!(Cut::Sequences(4).micro_batches(&sequences), [vec![0, 2, 1, 3], vec![4]]);
        // Lengths 3, 4; 9, 4; 20.
        assert_eq!(Cut::Tokens(12).micro_batches(&sequences), [vec![0, 2], vec![1], vec![3], vec![4]]);
        assert_eq!(Cut::Tokens(16).micro_batches(&sequences), [vec![0, 2, 1], vec![3], vec![4]]);
        assert!(Cut::Tokens(12).micro_batches(&[]).is_empty());
    }
}
