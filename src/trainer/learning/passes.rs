//! Passes over a batch: each rank passes over its slices.

use burnish_algorithm::{gather, scatter};
use burnish_distributed::Ranks;
use burnish_model::Sequence;

use super::mini_batch::lengths;

/// Returns columns for every response token, by passes over micro-batches. Each slice is cut into micro-batches separately,
/// because rounding depends on the rows of a pass and must not depend on the number of ranks. Collective.
///
/// `offsets` cut a column into the responses of `sequences`; `groups` names the prompt of each. `cut` returns the micro-batches
/// of some sequences, as indices; `pass` returns the columns of a micro-batch. Empty batches give empty columns.
pub(super) fn columns<const N: usize>(
    ranks: &Ranks,
    sequences: &[Sequence],
    groups: &[usize],
    offsets: &[usize],
    cut: impl Fn(&[usize]) -> Vec<Vec<usize>>,
    pass: impl Fn(&[Sequence]) -> [Vec<f32>; N],
) -> [Vec<f32>; N] {
    let slices = ranks.slices().cut(&lengths(sequences), groups);
    let own = &slices[ranks.local_slices()];
    let mut found = [const { Vec::new() }; N];
    for micro in own.iter().flat_map(|slice| cut(slice)) {
        let of_micro: Vec<Sequence> = micro.iter().map(|&i| sequences[i]).collect();
        for (column, values) in found.iter_mut().zip(pass(&of_micro)).filter(|(_, values)| !values.is_empty()) {
            column.resize(offsets[sequences.len()], 0.0);
            scatter(column, &values, offsets, &micro);
        }
        ranks.beat();
    }
    let (own, all) = (own.concat(), slices.concat());
    found.map(|column| {
        let of_own = if column.is_empty() { Vec::new() } else { gather(&column, offsets, &own) };
        let of_all = ranks.concat_f32s(of_own);
        let mut column = vec![0.0; of_all.len()];
        if !of_all.is_empty() {
            scatter(&mut column, &of_all, offsets, &all);
        }
        column
    })
}
