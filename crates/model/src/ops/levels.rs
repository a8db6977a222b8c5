//! The segments of packed sequences for recurrences that ordinary tensor operations compute: all stems at once, and then all
//! branches at once. Segments are padded to whole chunks.

use burn::tensor::{Device, Tensor};

use super::flex::{index, tensor_from_vec};
use super::packed::{Packed, Segment};

/// The rows of segments of one level, each padded to the same number of chunks.
pub(super) struct Padded {
    pub segments: usize,
    pub chunks: usize,
    /// Rows of a chunk.
    size: usize,
    /// [segments · chunks · size]; 0 for padding.
    rows: Vec<usize>,
    /// 1 for a row, 0 for padding.
    present: Vec<f32>,
    /// The places of the rows of all segments, one after another.
    places: Vec<usize>,
}

impl Padded {
    fn new(segments: &[&Segment], size: usize) -> Self {
        let chunks = segments.iter().map(|s| s.rows.len().div_ceil(size)).max().unwrap_or(0).max(1);
        let len = chunks * size;
        let mut padded = Self {
            segments: segments.len(),
            chunks,
            size,
            rows: vec![0; segments.len() * len],
            present: vec![0.0; segments.len() * len],
            places: Vec::new(),
        };
        for (i, segment) in segments.iter().enumerate() {
            for (at, row) in (i * len..).zip(segment.rows.clone()) {
                (padded.rows[at], padded.present[at]) = (row, 1.0);
                padded.places.push(at);
            }
        }
        padded
    }

    /// The number of rows with padding.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The chunks of the segments, padded: x [rows, heads, d] -> [segments, heads, chunks, rows of a chunk, d].
    pub(super) fn chunked(&self, x: &Tensor<3>) -> Tensor<5> {
        let [_, heads, d] = x.dims();
        let shape = [self.segments, self.chunks, self.size, heads, d];
        (x.clone().select(0, index(self.rows.iter().copied(), &x.device()))).reshape(shape).permute([0, 3, 1, 2, 4])
    }

    /// 1 for a row, 0 for padding, [segments, 1, chunks, rows of a chunk, 1].
    pub(super) fn present(&self, device: &Device) -> Tensor<5> {
        tensor_from_vec(self.present.clone(), [self.segments, 1, self.chunks, self.size, 1], device)
    }
}

/// 1 where `keep` is true, [size, size], as a batch of matrices.
pub(super) fn mask(size: usize, keep: impl Fn(usize, usize) -> bool, device: &Device) -> Tensor<5> {
    let values = (0..size * size).map(|i| if keep(i / size, i % size) { 1.0 } else { 0.0 }).collect();
    tensor_from_vec(values, [1, 1, 1, size, size], device)
}

/// Computes the stems and then the branches with `level`, which gets the rows of a level and the states before them, and returns
/// outputs [padded rows, values] and the states after the segments [segments, ..]. Returns the outputs [rows, values], and the
/// states after the stems.
pub(super) fn by_levels<const D: usize>(
    packed: &Packed,
    size: usize,
    device: &Device,
    level: impl Fn(&Padded, Option<Tensor<D>>) -> (Tensor<2>, Tensor<D>),
) -> (Tensor<2>, Tensor<D>) {
    let stems: Vec<&Segment> = packed.trees.iter().map(|tree| &tree[0]).collect();
    let branches = packed.trees.iter().enumerate().flat_map(|(tree, segments)| segments[1..].iter().map(move |s| (tree, s)));
    let (trees, branches): (Vec<usize>, Vec<&Segment>) = branches.filter(|(_, s)| !s.rows.is_empty()).unzip();
    let rows = Padded::new(&stems, size);
    let (y, states) = level(&rows, None);
    let mut outputs = vec![y.select(0, index(rows.places.into_iter(), device))];
    if !branches.is_empty() {
        let initial = states.clone().select(0, index(trees.into_iter(), device));
        let rows = Padded::new(&branches, size);
        let (y, _) = level(&rows, Some(initial));
        outputs.push(y.select(0, index(rows.places.into_iter(), device)));
    }
    // The outputs of all stems, then of all branches, in the order of the rows.
    let mut place = vec![0; packed.rows()];
    let in_order = stems.into_iter().chain(branches).flat_map(|segment| segment.rows.clone());
    in_order.enumerate().for_each(|(at, row)| place[row] = at);
    (Tensor::cat(outputs, 0).select(0, index(place.into_iter(), device)), states)
}
