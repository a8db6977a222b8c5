//! The padded layout of attention's operands: segments next to each other, with queries cut into ranges that are processed one
//! after another. Rows are gathered into this layout and back by indices. Gradients also use gathers and sums, never scattered
//! additions, so their order is fixed. The GPU kernels are in `cube/blocks.rs`.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use burn::backend::{Backend, TensorMetadata, get_or_init_device_settings, tensor::*};
use burn::tensor::{DType, Shape, Slice, TensorData};

use super::autodiff::wide;
use super::packed::{Packed, Segment};

/// The positions of a layout's rows in the padded blocks, as indices on the device.
pub(crate) struct Blocks<B: Backend> {
    pub device: B::Device,
    step: usize,
    max: usize,
    pub segments: usize,
    /// The padded key count of the longest segment.
    pub keys: usize,
    /// The padded queries of the longest segment, cut into at least one range.
    pub ranges: Vec<Queries<B>>,
    /// The row of each padded key [segments · keys]; row 0 for padding.
    pub(crate) key_rows: IntTensor<B>,
    /// The padded position of each row among the queries of all ranges. Uploaded on first use, since the GPU kernels do not need
    /// it.
    query_places: (Vec<i64>, OnceLock<IntTensor<B>>),
    /// The padded position of each row among the keys of its segment.
    pub(crate) key_places: IntTensor<B>,
    pub(crate) stems: Option<Stems<B>>,
}

/// A range of the padded queries of each segment that is long enough. With several ranges, the segments are sorted by length, so
/// these are the first ones.
pub(crate) struct Queries<B: Backend> {
    pub segments: usize,
    /// Query indices, counted from the first query of each segment.
    pub range: Range<usize>,
    /// The row of each query [segments · queries]; row 0 for padding.
    pub rows: IntTensor<B>,
    /// The position of each query in its sequence [segments · queries]; −1 for padding, which sees no keys.
    pub positions: IntTensor<B>,
    /// The range from the smallest position to the largest.
    span: Range<usize>,
    /// Key counts are padded to multiples of this.
    step: usize,
}

/// The rows that several segments share.
pub(crate) struct Stems<B: Backend> {
    /// The padded positions of each shared row in other segments, [shared · most]; one past the last position if a row has fewer.
    pub places: IntTensor<B>,
    pub max: usize,
    shared: usize,
    /// For each row, its number among the shared rows plus 1; 0 for rows of a single segment.
    pub of_row: IntTensor<B>,
}

pub(super) fn int<B: Backend>(values: impl IntoIterator<Item = i64>, device: &B::Device) -> IntTensor<B> {
    let values: Vec<i64> = values.into_iter().collect();
    let n = values.len();
    let dtype: DType = get_or_init_device_settings::<B>(device).int_dtype.into();
    B::int_from_data(TensorData::new(values, [n]).convert_dtype(dtype), device)
}

/// Yields `to` values: the `rows`, then `padding`.
fn padded(rows: impl Iterator<Item = usize>, to: usize, padding: i64) -> impl Iterator<Item = i64> {
    rows.map(|row| row as i64).chain(std::iter::repeat(padding)).take(to)
}

impl<B: Backend> Queries<B> {
    /// Takes the range from the segments that overlap with it, at least one.
    fn new(segments: &[&Segment], range: Range<usize>, step: usize, device: &B::Device) -> Self {
        let part_of = |s: &Segment| range.start..range.end.min(s.rows.len());
        let rows = segments.iter().flat_map(|s| padded(part_of(s).map(|i| s.rows.start + i), range.len(), 0));
        let positions = segments.iter().flat_map(|s| padded(part_of(s).map(|i| s.stem.len() + i), range.len(), -1));
        let first = segments.iter().map(|s| s.stem.len() + range.start).min().unwrap_or(0);
        let end = segments.iter().map(|s| s.stem.len() + part_of(s).end).max().unwrap_or(0);
        Self {
            segments: segments.len(),
            rows: int::<B>(rows, device),
            positions: int::<B>(positions, device),
            span: first..end,
            step,
            range,
        }
    }

    /// The keys that any of these queries sees, by position, padded. For a layout with one range these are all keys, since its
    /// first query is the first of a sequence.
    pub(crate) fn keys(&self, window: Option<usize>) -> Range<usize> {
        let first = window.map_or(0, |window| (self.span.start + 1).saturating_sub(window));
        first / self.step * self.step..self.span.end.next_multiple_of(self.step)
    }
}

/// Gathers rows into the padded layout, by the row of each padded query or key: [rows, heads, d] -> [segments, kv heads, group ·
/// queries, d]. For keys, the group is 1.
pub(super) fn pad<B: Backend>(x: FloatTensor<B>, rows: &IntTensor<B>, [segments, kv_heads]: [usize; 2]) -> FloatTensor<B> {
    let (group, queries, d) = (x.shape()[1] / kv_heads, rows.shape()[0] / segments, x.shape()[2]);
    let x = B::float_reshape(B::float_select(x, 0, rows.clone()), Shape::from([segments, queries, kv_heads, group, d]));
    B::float_reshape(B::float_permute(x, &[0, 2, 3, 1, 4]), Shape::from([segments, kv_heads, group * queries, d]))
}

impl<B: Backend> Blocks<B> {
    /// Returns the indices of a layout, computed by the first layer of a pass. Blocks are padded to multiples of `step`. A range
    /// has at most `max` queries, a multiple of `step`.
    pub(crate) fn cached(packed: &Packed, device: &B::Device, step: usize, max: usize) -> Arc<Self> {
        let fits = |x: &Self| (x.step, x.max) == (step, max) && x.device == *device;
        packed.prepared.get(fits, || Self::new(packed, device, step, max))
    }

    fn new(packed: &Packed, device: &B::Device, step: usize, max: usize) -> Self {
        let mut segments: Vec<&Segment> = packed.segments().filter(|s| !s.rows.is_empty()).collect();
        let longest = |length: fn(&Segment) -> usize| segments.iter().map(|s| length(s)).max().unwrap_or(0);
        let (queries, keys) = (longest(|s| s.rows.len()).next_multiple_of(step), longest(Segment::keys).next_multiple_of(step));
        if queries > max {
            segments.sort_by_key(|s| Reverse(s.rows.len()));
        }
        let key_rows = segments.iter().flat_map(|s| padded(s.stem.clone().chain(s.rows.clone()), keys, 0));
        let (mut query_places, mut key_places) = (vec![0; packed.rows()], vec![0; packed.rows()]);
        for (i, s) in segments.iter().enumerate() {
            s.rows.clone().enumerate().for_each(|(offset, row)| key_places[row] = (i * keys + s.stem.len() + offset) as i64);
        }
        let mut before = 0;
        let starts = (0..queries.max(1)).step_by(max);
        let ranges = starts.map(|start| {
            let range = start..queries.min(start.saturating_add(max));
            let inside: Vec<&Segment> = segments.iter().copied().filter(|s| s.rows.len() > start).collect();
            for (i, s) in inside.iter().enumerate() {
                let rows = s.rows.clone().skip(start).take(range.len()).enumerate();
                rows.for_each(|(offset, row)| query_places[row] = (before + i * range.len() + offset) as i64);
            }
            before += inside.len() * range.len();
            Queries::new(&inside, range, step, device)
        });
        Self {
            device: device.clone(),
            step,
            max,
            ranges: ranges.collect(),
            key_rows: int::<B>(key_rows, device),
            query_places: (query_places, OnceLock::new()),
            key_places: int::<B>(key_places, device),
            stems: Stems::new(&segments, packed.rows(), keys, device),
            segments: segments.len(),
            keys,
        }
    }

    /// Gathers rows from the results of each range: [segments, kv heads, group · queries, d] each -> [rows, heads, d].
    pub(crate) fn rows(&self, parts: Vec<FloatTensor<B>>) -> FloatTensor<B> {
        let in_order = |(x, queries): (FloatTensor<B>, &Queries<B>)| {
            let (shape, n) = (x.shape(), queries.range.len());
            let (segments, kv_heads, group, d) = (shape[0], shape[1], shape[2] / n, shape[3]);
            let x = B::float_reshape(x, Shape::from([segments, kv_heads, group, n, d]));
            let x = B::float_permute(x, &[0, 3, 1, 2, 4]);
            B::float_reshape(x, Shape::from([segments * n, kv_heads * group, d]))
        };
        let (places, on_device) = &self.query_places;
        let places = on_device.get_or_init(|| int::<B>(places.iter().copied(), &self.device)).clone();
        let mut parts: Vec<_> = parts.into_iter().zip(&self.ranges).map(in_order).collect();
        let x = if parts.len() == 1 { parts.remove(0) } else { B::float_cat(parts, 0) };
        B::float_select(x, 0, places)
    }

    /// The slice of padded keys of this shape that a range sees; `None` for all of them.
    fn part(&self, shape: &Shape, segments: usize, keys: &Range<usize>) -> Option<[Slice; 4]> {
        let part = [0..segments, 0..shape[1], keys.clone(), 0..shape[3]];
        (segments != self.segments || *keys != (0..self.keys)).then_some(part.map(Slice::from))
    }

    /// Selects the `keys` of the first `segments` from all padded keys.
    pub(crate) fn some_keys(&self, x: &FloatTensor<B>, segments: usize, keys: &Range<usize>) -> FloatTensor<B> {
        match self.part(&x.shape(), segments, keys) {
            Some(part) => B::float_slice(x.clone(), &part),
            None => x.clone(),
        }
    }

    /// Adds the gradients of the `keys` of the first `segments` to the sum over earlier ranges. With several ranges, the sum is
    /// at least f32.
    pub(crate) fn add_keys(
        &self,
        sum: Option<FloatTensor<B>>,
        x: FloatTensor<B>,
        segments: usize,
        keys: &Range<usize>,
    ) -> FloatTensor<B> {
        let x = if self.ranges.len() == 1 { x } else { wide::<B>(x) };
        let all = Shape::from([self.segments, x.shape()[1], self.keys, x.shape()[3]]);
        match (sum, self.part(&all, segments, keys)) {
            (None, None) => x,
            (Some(sum), None) => B::float_add(sum, x),
            (sum, Some(part)) => {
                let sum = sum.unwrap_or_else(|| B::float_zeros(all, &self.device, x.dtype().into()));
                let x = B::float_add(B::float_slice(sum.clone(), &part), x);
                B::float_slice_assign(sum, &part, x)
            }
        }
    }

    /// Sums over all positions of each row: [segments, kv heads, keys, d] -> [rows, kv heads, d] in `dtype`.
    pub(crate) fn sum_of_keys(&self, x: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
        let (kv_heads, d) = (x.shape()[1], x.shape()[3]);
        let x = B::float_permute(x, &[0, 2, 1, 3]);
        let x = B::float_reshape(x, Shape::from([self.segments * self.keys, kv_heads, d]));
        let gradients = B::float_select(x.clone(), 0, self.key_places.clone());
        let Some(stems) = &self.stems else { return B::float_cast(gradients, dtype.into()) };
        let (x, gradients) = (wide::<B>(x), wide::<B>(gradients));
        let zero = || B::float_zeros(Shape::from([1, kv_heads, d]), &x.device(), x.dtype().into());
        let parts = B::float_select(B::float_cat(vec![x.clone(), zero()], 0), 0, stems.places.clone());
        let sums = B::float_sum_dim(B::float_reshape(parts, Shape::from([stems.shared, stems.max, kv_heads, d])), 1);
        let sums = B::float_cat(vec![zero(), B::float_reshape(sums, Shape::from([stems.shared, kv_heads, d]))], 0);
        B::float_cast(B::float_add(gradients, B::float_select(sums, 0, stems.of_row.clone())), dtype.into())
    }
}

impl<B: Backend> Stems<B> {
    fn new(segments: &[&Segment], rows: usize, keys: usize, device: &B::Device) -> Option<Self> {
        let mut places: Vec<Vec<i64>> = vec![Vec::new(); rows];
        for (i, s) in segments.iter().enumerate() {
            s.stem.clone().enumerate().for_each(|(offset, row)| places[row].push((i * keys + offset) as i64));
        }
        let max = places.iter().map(Vec::len).max().filter(|&max| max > 0)?;
        let mut shared = 0;
        let of_row: Vec<i64> = places
            .iter()
            .map(|p| {
                if p.is_empty() {
                    0
                } else {
                    shared += 1;
                    shared
                }
            })
            .collect();
        let nowhere = (segments.len() * keys) as i64;
        let places = places.into_iter().filter(|p| !p.is_empty());
        let places = places.flat_map(|p| p.into_iter().chain(std::iter::repeat(nowhere)).take(max));
        Some(Self { places: int::<B>(places, device), max, shared: shared as usize, of_row: int::<B>(of_row, device) })
    }
}
