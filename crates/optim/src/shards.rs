//! The division of a model's trained parameters among the ranks (ZeRO-1): each rank updates its own elements, and keeps the
//! optimizer's state of them alone.
//!
//! The parameters lie one behind another in the order of their names, and every rank has a run of elements. A cut is the allowed
//! place that is nearest to an even division: between two parameters or, in a parameter that can be updated in pieces, at a multiple
//! of [`GRAIN`] elements from its start.

use std::ops::Range;

use super::held::Held;
use super::rule::Parameter;

/// The distance of the places where a parameter may be cut. It is a multiple of the elements of one number of any optimizer's state,
/// and the length of the runs that a gradient's norm is added up from.
pub const GRAIN: usize = burnish_model::gradients::PART;

/// The trained parameters, and which elements of each are whose.
pub struct Shards {
    /// In the order of names.
    pub parameters: Vec<Sharded>,
    /// The tensors that stand for several parameters, or for one that is transposed.
    pub held: Held,
}

/// A parameter that is cut.
pub struct Sharded {
    pub name: String,
    pub shape: Vec<usize>,
    /// Where the elements of each rank begin, and where those of the last one end.
    cuts: Vec<usize>,
}

/// A run of at most [`GRAIN`] elements of one parameter, from a multiple of it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The place of the parameter among all.
    pub parameter: usize,
    pub elements: Range<usize>,
}

impl Sharded {
    pub fn parameter(&self) -> Parameter<'_> {
        Parameter { name: &self.name, shape: &self.shape }
    }

    /// The number of elements of the whole parameter.
    pub fn size(&self) -> usize {
        self.parameter().size()
    }

    /// The elements of a rank: none, some or all.
    pub fn of(&self, rank: usize) -> Range<usize> {
        self.cuts[rank]..self.cuts[rank + 1]
    }
}

impl Shards {
    /// Divides parameters, in the order of their names, among `ranks`. `splits`: whether a parameter can be updated in pieces.
    pub fn new(shapes: impl IntoIterator<Item = (String, Vec<usize>)>, ranks: usize, splits: impl Fn(Parameter) -> bool) -> Self {
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
        Self { parameters, held: Held::default() }
    }

    /// The elements of a rank in parts, in their order.
    pub fn parts(&self, rank: usize) -> Vec<Part> {
        let of = |(parameter, sharded): (usize, &Sharded)| {
            let Range { start, end } = sharded.of(rank);
            let part = move |at: usize| Part { parameter, elements: at..end.min(at + GRAIN) };
            (start..end).step_by(GRAIN).map(part)
        };
        self.parameters.iter().enumerate().flat_map(of).collect()
    }

    /// The parameter with this name.
    pub fn find(&self, name: &str) -> Option<&Sharded> {
        self.place(name).map(|place| &self.parameters[place])
    }

    /// The place of the parameter with this name among all.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.parameters.binary_search_by(|sharded| sharded.name.as_str().cmp(name)).ok()
    }
}

/// The allowed place that is nearest to `wanted` in a parameter; of two that are equally near, the first.
fn allowed(wanted: usize, size: usize, splits: bool) -> usize {
    let wanted = wanted.min(size);
    let before = if splits { wanted / GRAIN * GRAIN } else { 0 };
    let after = if splits { size.min(before + GRAIN) } else { size };
    if wanted - before <= after - wanted { before } else { after }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every element is one rank's; cuts are where they are allowed; a share is even but for what cannot be cut.
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
                    let own = sharded.of(rank);
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
            for Part { parameter, elements } in (0..ranks).flat_map(|rank| shards.parts(rank)) {
                prop_assert!(parameter >= last && elements.start == at[parameter] && elements.start % GRAIN == 0);
                prop_assert!((1..=GRAIN).contains(&elements.len()));
                (last, at[parameter]) = (parameter, elements.end);
            }
            prop_assert!(at.iter().zip(&sizes).all(|(end, (size, _))| end == size));
        }
    }
}
