//! Sum of the gradients of all ranks: each rank receives the sums of its elements, and Σ g² of all elements.
//!
//! Every element is added on the tree of slices ([`tree`]), so a sum has the same bits for any number of ranks.

use std::collections::BTreeMap;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Bytes, Device};
use rayon::prelude::*;

use super::gradient_sum::GradientSum;
use super::shards::{GRAIN, ShardPart, Shards};
use burnish_distributed::Ranks;
use burnish_distributed::tree::{self, Subtree, leaves_of, nodes_of};
use burnish_model::Gradients;
use burnish_model::ops::{f32s, flex_f32, sum_squares, tensor_from_vec, to_host};

/// Number of parts that all ranks together receive at a time: 256 MiB of each node of the tree.
const AT_A_TIME: usize = 1024;

/// A gradient after the sum.
pub(crate) struct Reduced {
    /// Elements of this rank.
    pub elements: Vec<f32>,
    /// Σ g² of all elements.
    pub squares: f64,
}

/// Adds the gradients of all ranks: the sum for each parameter, in their order; `None` if no slice has a gradient. Collective.
///
/// # Panics
/// If a parameter that is not trained has a gradient.
pub(crate) fn reduce(gradients: GradientSum, shards: &Shards, ranks: &Ranks) -> Vec<Option<Reduced>> {
    reduce_by(gradients, shards, ranks, (AT_A_TIME / ranks.size()).max(1))
}

/// Does the same as [`reduce`]; each rank receives `at_a_time` parts at a time.
fn reduce_by(gradients: GradientSum, shards: &Shards, ranks: &Ranks, at_a_time: usize) -> Vec<Option<Reduced>> {
    let GradientSum { slices, sum } = gradients;
    let nodes: Vec<Vec<Subtree>> =
        (0..ranks.size()).map(|rank| nodes_of(leaves_of(rank, ranks.size(), slices), slices)).collect();
    let mut nodes_of_rank: Vec<_> =
        sum.into_values().into_iter().take(nodes[ranks.rank()].len()).map(|slice| on_host(slice.0, shards)).collect();
    assert_eq!(nodes_of_rank.len(), nodes[ranks.rank()].len(), "every slice of this rank has been worked out");
    // A parameter without a gradient is left out of a sum: a zero could not be distinguished from a gradient.
    let present = |node: &Vec<Option<FlexTensor>>| node.iter().map(Option::is_some).collect::<Vec<bool>>();
    let exchange = Exchange {
        slices,
        present: split(ranks.concat(nodes_of_rank.iter().map(present).collect()), nodes.iter().map(Vec::len)),
        nodes: nodes.concat(),
    };
    let parts: Vec<Vec<ShardPart>> = (0..ranks.size()).map(|rank| shards.parts(rank)).collect();
    let rounds = parts.iter().map(|parts| parts.len().div_ceil(at_a_time)).max().unwrap_or(0);
    let mut unsent: Vec<usize> = shards.parameters.iter().map(|parameter| parameter.size()).collect();
    let mut sums: Vec<Vec<f32>> = shards.parameters.iter().map(|_| Vec::new()).collect();
    let mut squares = Vec::new();
    for round in 0..rounds {
        let of_round: Vec<&[ShardPart]> =
            parts.iter().map(|parts| parts.chunks(at_a_time).nth(round).unwrap_or_default()).collect();
        let received = exchange.round(&nodes_of_rank, &of_round, ranks);
        for part in of_round.iter().copied().flatten() {
            unsent[part.parameter] -= part.elements.len();
            if unsent[part.parameter] == 0 {
                nodes_of_rank.iter_mut().for_each(|node| node[part.parameter] = None);
            }
        }
        let mine = of_round[ranks.rank()];
        for (part, sum) in mine.iter().zip(exchange.joined(mine, &received)) {
            if let Some((sum, of_part)) = sum {
                let all = &mut sums[part.parameter];
                all.reserve_exact(shards.parameters[part.parameter].range_of(ranks.rank()).len() - all.len());
                all.extend(sum);
                squares.push(of_part);
            }
        }
    }
    let mut squares = ranks.concat(squares).into_iter();
    let reduced = |(place, elements): (usize, Vec<f32>)| {
        let is_present = exchange.present.iter().flatten().any(|node| node[place]);
        let parts = shards.parameters[place].size().div_ceil(GRAIN);
        is_present.then(|| Reduced { elements, squares: squares.by_ref().take(parts).sum() })
    };
    sums.into_iter().enumerate().map(reduced).collect()
}

/// Facts that the ranks know about each other.
struct Exchange {
    slices: usize,
    /// Nodes of the tree that each rank is left with, rank after rank.
    nodes: Vec<Subtree>,
    /// For each rank, each of its nodes and each parameter: true if the gradient exists.
    present: Vec<Vec<Vec<bool>>>,
}

impl Exchange {
    /// Sends each rank its parts of a round. Returns the data received by this rank: for each rank, each part and each node.
    fn round(&self, own: &[Vec<Option<FlexTensor>>], parts: &[&[ShardPart]], ranks: &Ranks) -> Vec<f32> {
        let mut send: Vec<f32> = Vec::new();
        let mut send_counts = Vec::with_capacity(parts.len());
        for &parts in parts {
            let before = send.len();
            for part in parts {
                let gradients = own.iter().filter_map(|node| node[part.parameter].as_ref());
                gradients.for_each(|gradient| send.extend_from_slice(&f32s(gradient)[part.elements.clone()]));
            }
            send_counts.push(4 * (send.len() - before));
        }
        let count = |nodes: &Vec<Vec<bool>>| {
            let of = |part: &ShardPart| part.elements.len() * nodes.iter().filter(|node| node[part.parameter]).count();
            4 * parts[ranks.rank()].iter().map(of).sum::<usize>()
        };
        let received_counts: Vec<usize> = self.present.iter().map(count).collect();
        let mut received = Bytes::from_elems(vec![0f32; received_counts.iter().sum::<usize>() / 4]);
        ranks.group().exchange(&Bytes::from_elems(send), &send_counts, &mut received, &received_counts);
        received.try_into_vec().unwrap_or_else(|_| unreachable!("they were f32s"))
    }

    /// Adds up each part, and its squares; `None` if no node has a gradient.
    fn joined(&self, parts: &[ShardPart], received: &[f32]) -> Vec<Option<(Vec<f32>, f64)>> {
        let mut places: Vec<Vec<Option<&[f32]>>> = vec![Vec::new(); parts.len()];
        let mut rest = received;
        for nodes in &self.present {
            for (part, places) in parts.iter().zip(&mut places) {
                let mut next = || rest.split_off(..part.elements.len()).expect("a number for every element");
                places.extend(nodes.iter().map(|node| node[part.parameter].then(&mut next)));
            }
        }
        let join = |places: Vec<Option<&[f32]>>| {
            let values = places.into_iter().map(|values| values.map(<[f32]>::to_vec));
            let sum = tree::join(&self.nodes, values, self.slices)?;
            let squares = sum_squares(&sum);
            Some((sum, squares))
        };
        places.into_par_iter().map(join).collect()
    }
}

/// Returns the gradients in host memory, in the order of the parameters.
fn on_host(gradients: Gradients, shards: &Shards) -> Vec<Option<FlexTensor>> {
    let mut all: Vec<Option<FlexTensor>> = shards.parameters.iter().map(|_| None).collect();
    let mut joined: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    let flex = |values: Vec<f32>| {
        let size = values.len();
        flex_f32(&tensor_from_vec(values, [size], &Device::flex())).expect("a tensor of flex")
    };
    for (name, gradient) in gradients.0 {
        let tensor = shards.file_tensors.tensor(&name);
        let place = shards.place(tensor.unwrap_or(&name));
        let place = place.unwrap_or_else(|| panic!("a gradient of `{name}`, which is not trained"));
        match tensor {
            Some(_) => {
                let tensor = joined.entry(place).or_insert_with(|| vec![0.0; shards.parameters[place].size()]);
                shards.file_tensors.put(&name, &to_host(gradient), tensor);
            }
            None => all[place] = Some(flex_f32(&gradient).unwrap_or_else(|| flex(to_host(gradient)))),
        }
    }
    joined.into_iter().for_each(|(place, values)| all[place] = Some(flex(values)));
    all
}

/// Cuts a list into runs of these lengths.
fn split<T>(all: Vec<T>, lengths: impl Iterator<Item = usize>) -> Vec<Vec<T>> {
    let mut all = all.into_iter();
    lengths.map(|length| all.by_ref().take(length).collect()).collect()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::gradient_sum::Slice;
    use super::*;
    use burnish_distributed::{Slices, threads};

    const SLICES: usize = 5;

    /// Returns parameters that are cut, that cannot be cut, and that are small; the last one has no gradient.
    fn shapes() -> Vec<(String, Vec<usize>)> {
        let sizes = [3 * GRAIN + 77, 2 * GRAIN + 5, 9, GRAIN, 31, 8];
        sizes.into_iter().enumerate().map(|(index, size)| (format!("{index}"), vec![size])).collect()
    }

    /// Returns the gradients of a slice, which lacks a parameter.
    fn gradients(slice: usize) -> Gradients {
        let mut gradients = Gradients::default();
        for (index, (name, shape)) in shapes().into_iter().enumerate().filter(|(index, _)| *index != slice && *index < 5) {
            let value = |i: usize| ((i * (index + 3)) as f32 * 0.7 + slice as f32).sin() * 10f32.powi(slice as i32 - 2);
            gradients.add(&name, tensor_from_vec((0..shape[0]).map(value).collect(), [shape[0]], &Device::flex()));
        }
        gradients
    }

    /// For any number of ranks and any size of rounds, the sums and their norms equal the result of one rank.
    #[test]
    fn sums_do_not_depend_on_ranks_and_rounds() {
        let mut sum = tree::Sum::new(SLICES);
        (0..SLICES).for_each(|slice| sum.push_leaf(slice, Slice(gradients(slice))));
        let total = sum.total().0;
        let squares: Vec<u64> = total.squares_on_cpu().map(|(_, squares)| squares.to_bits()).collect();
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let expected: Vec<Vec<u32>> = total.0.into_values().map(|gradient| bits(to_host(gradient))).collect();
        for (size, at_a_time) in [(1, 2), (2, 1), (3, 1), (3, 2), (3, 100), (4, 3), (7, 2)] {
            let run = |group| {
                let ranks = Ranks::new(group);
                ranks.cut_by(Slices { count: SLICES, balanced: true });
                let rows: Vec<Vec<usize>> = (0..SLICES).map(|slice| vec![slice]).collect();
                let (sum, found) = GradientSum::over(&ranks, &rows, |rows, all| {
                    *all = gradients(rows[0]);
                    rows[0]
                });
                let shards = Shards::new(shapes(), size, |parameter| parameter.name != "1");
                (found, reduce_by(sum, &shards, &ranks, at_a_time))
            };
            let all: Vec<(Vec<usize>, Vec<Option<Reduced>>)> = thread::scope(|scope| {
                let run = &run;
                let handles: Vec<_> = threads(size).into_iter().map(|group| scope.spawn(move || run(group))).collect();
                handles.into_iter().map(|handle| handle.join().unwrap()).collect()
            });
            let mut sums = vec![Vec::new(); expected.len()];
            for (found, reduced) in all {
                assert_eq!(found, (0..SLICES).collect::<Vec<_>>());
                assert!(reduced.len() == expected.len() + 1 && reduced[expected.len()].is_none());
                for (index, reduced) in reduced.into_iter().flatten().enumerate() {
                    assert_eq!(reduced.squares.to_bits(), squares[index], "{size} ranks, {at_a_time} at a time");
                    sums[index].extend(bits(reduced.elements));
                }
            }
            assert!(sums == expected, "{size} ranks, {at_a_time} at a time");
        }
    }
}
