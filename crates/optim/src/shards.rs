//! Division of a model's trained parameters among the ranks (ZeRO-1): each rank updates its own elements, and stores only their
//! optimizer state.
//!
//! The parameters are concatenated in the order of their names, and every rank has a range of elements. A cut is the allowed
//! position nearest to an even division: between two parameters or, in a parameter that can be updated in pieces, at a multiple
//! of [`GRAIN`] elements from its start.

use std::ops::Range;

use super::file_tensors::FileTensors;
use super::rule::Parameter;

/// Distance of the positions at which a parameter may be cut. It is a multiple of the elements per element of any optimizer's
/// state, and the length of the runs that a gradient's norm is summed in.
pub(crate) const GRAIN: usize = burnish_model::gradients::PART;

/// The trained parameters, and the ranks' ranges of each.
pub(crate) struct Shards {
    /// In the order of names.
    pub parameters: Vec<Sharded>,
    /// Tensors that contain several parameters, or a transposed parameter.
    pub file_tensors: FileTensors,
}

/// A parameter and its cuts.
pub(crate) struct Sharded {
    pub name: String,
    pub shape: Vec<usize>,
    /// Start of the elements of each rank, and the end of the last rank's.
    cuts: Vec<usize>,
}

/// At most [`GRAIN`] elements of one parameter, starting at a multiple of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardPart {
    /// Index of the parameter.
    pub parameter: usize,
    pub elements: Range<usize>,
}

impl Sharded {
    pub(crate) fn parameter(&self) -> Parameter<'_> {
        Parameter { name: &self.name, shape: &self.shape }
    }

    /// Returns the number of elements of the whole parameter.
    pub(crate) fn size(&self) -> usize {
        self.parameter().size()
    }

    /// Returns the elements of a rank: none, some or all.
    pub(crate) fn range_of(&self, rank: usize) -> Range<usize> {
        self.cuts[rank]..self.cuts[rank + 1]
    }
}

impl Shards {
    /// Divides parameters, in the order of their names, among `ranks`. `splits` tells if a parameter can be updated in pieces.
    pub(crate) fn new(
        shapes: impl IntoIterator<Item = (String, Vec<usize>)>,
        ranks: usize,
        splits: impl Fn(Parameter) -> bool,
    ) -> Self {
        let mut parameters: Vec<Sharded> =
            shapes.into_iter().map(|(name, shape)| Sharded { name, shape, cuts: Vec::with_capacity(ranks + 1) }).collect();
        let total: usize = parameters.iter().map(Sharded::size).sum();
        let mut start = 0;
        for sharded in &mut parameters {
            let (size, splits) = (sharded.size(), splits(sharded.parameter()));
            let cut = |rank: usize| allowed((rank * total / ranks).saturating_sub(start), size, splits);
            sharded.cuts.push(0);
            sharded.cuts.extend((1..ranks).map(cut));
            sharded.cuts.push(size);
            start += size;
        }
        Self { parameters, file_tensors: FileTensors::default() }
    }

    /// Returns the elements of a rank in parts, in their order.
    pub(crate) fn parts(&self, rank: usize) -> Vec<ShardPart> {
        let of = |(parameter, sharded): (usize, &Sharded)| {
            let Range { start, end } = sharded.range_of(rank);
            let part = move |at: usize| ShardPart { parameter, elements: at..end.min(at + GRAIN) };
            (start..end).step_by(GRAIN).map(part)
        };
        self.parameters.iter().enumerate().flat_map(of).collect()
    }

    /// Returns the parameter with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Sharded> {
        self.place(name).map(|place| &self.parameters[place])
    }

    /// Returns the index of the parameter with this name.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.parameters.binary_search_by(|sharded| sharded.name.as_str().cmp(name)).ok()
    }
}

/// Returns the allowed position nearest to `requested` in a parameter; of two equally near positions, the first.
fn allowed(requested: usize, size: usize, splits: bool) -> usize {
    let requested = requested.min(size);
    let before = if splits { requested / GRAIN * GRAIN } else { 0 };
    let after = if splits { size.min(before + GRAIN) } else { size };
    if requested - before <= after - requested { before } else { after }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every element belongs to one rank; cuts are at allowed positions; a share is even except for parameters that cannot be
        /// cut.
        #[test]
        fn every_element_is_of_one_rank(
            sizes in prop::collection::vec((prop_oneof![1usize..5000, 1usize..40 * GRAIN], any::<bool>()), 1..12),
            ranks in 1usize..9,
        ) {
            let shape = |(index, &(size, _)): (usize, &(usize, bool))| (format!("{index:02}"), vec![size]);
            let splits = |parameter: Parameter| sizes[parameter.name.parse::<usize>().unwrap()].1;
            let shards = Shards::new(sizes.iter().enumerate().map(shape), ranks, splits);
            let mut shares = vec![0; ranks];
            for (sharded, &(size, splits)) in shards.parameters.iter().zip(&sizes) {
                let mut end = 0;
                for (rank, share) in shares.iter_mut().enumerate() {
                    let own = sharded.range_of(rank);
                    prop_assert_eq!(own.start, end);
                    end = own.end;
                    *share += own.len();
                    let is_allowed = end == 0 || end == size || splits && end % GRAIN == 0;
                    prop_assert!(is_allowed, "{end} of {size}");
                }
                prop_assert_eq!(end, size);
            }
            let total: usize = shares.iter().sum();
            let piece = |&(size, splits): &(usize, bool)| if splits { size.min(GRAIN) } else { size };
            let indivisible = sizes.iter().map(piece).max().unwrap();
            for share in shares {
                let even = total as f64 / ranks as f64;
                prop_assert!((share as f64 - even).abs() <= 1.0 + indivisible as f64, "{share} of {total} for {ranks}");
            }
            let mut at = vec![0; sizes.len()];
            let mut last = 0;
            for ShardPart { parameter, elements } in (0..ranks).flat_map(|rank| shards.parts(rank)) {
                prop_assert!(parameter >= last && elements.start == at[parameter] && elements.start % GRAIN == 0);
                prop_assert!((1..=GRAIN).contains(&elements.len()));
                (last, at[parameter]) = (parameter, elements.end);
            }
            prop_assert!(at.iter().zip(&sizes).all(|(end, (size, _))| end == size));
        }
    }
}
