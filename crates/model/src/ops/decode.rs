//! Attention of one new position per sequence over a paged KV cache (inference only). A sequence sees only its own blocks, in
//! order. So its result depends neither on other sequences of the batch nor on the location of the blocks.

use std::sync::OnceLock;

use burn::backend::Flex;
use burn::tensor::{DType, Device, FloatDType, Int, Tensor, activation};
use rayon::prelude::*;

use super::attention_flex::Out;
use super::block_tables::{BLOCK, SentTables, Tables};
use super::flex::{cast, f32s, flex_f32, index, tensor_from_vec, to_host, uninit, whole_buffer, written};
use super::fused;
use super::packed::AttentionScoring;
use super::prepared::LayoutCache;
use super::rows::{gathered_dots, gathered_sums};
use super::scatter::assign_rows;
use super::simd;

/// The locations of a decode step's sequences in a cache of [blocks · BLOCK, kv heads · d].
pub struct CacheView<'a> {
    tables: &'a [&'a [usize]],
    lens: &'a [usize],
    /// The rows of the cache for the new positions.
    places: CacheRows,
    prepared: LayoutCache,
}

impl<'a> CacheView<'a> {
    /// Creates a view. `tables` has the blocks of each row's sequence, in order. `lens` has the length of each sequence,
    /// including the new position. Rows of one sequence are neighbours and have the same slice.
    pub fn new(tables: &'a [&'a [usize]], lens: &'a [usize]) -> Self {
        let places = tables.iter().zip(lens).map(|(table, len)| table[(len - 1) / BLOCK] * BLOCK + (len - 1) % BLOCK);
        Self { tables, lens, places: places.collect::<Vec<_>>().into(), prepared: LayoutCache::default() }
    }

    /// True if no row sees another row's new position.
    fn has_a_row_per_sequence(&self) -> bool {
        self.tables.windows(2).all(|pair| !std::ptr::eq(pair[0], pair[1]))
    }

    /// The rows of the cache that a row of the step sees.
    fn visible_rows(&self, row: usize, window: Option<usize>) -> impl Iterator<Item = usize> {
        let (table, len) = (self.tables[row], self.lens[row]);
        (len.saturating_sub(window.unwrap_or(len))..len).map(move |p| table[p / BLOCK] * BLOCK + p % BLOCK)
    }
}

/// Rows of the cache: on the host, and on the device after the first use there.
pub struct CacheRows {
    rows: Vec<usize>,
    index: OnceLock<Tensor<1, Int>>,
}

impl From<Vec<usize>> for CacheRows {
    fn from(rows: Vec<usize>) -> Self {
        Self { rows, index: OnceLock::new() }
    }
}

impl CacheRows {
    fn index(&self, device: &Device) -> Tensor<1, Int> {
        self.index.get_or_init(|| index(self.rows.iter().copied(), device)).clone()
    }
}

/// Writes the new keys and values [rows, kv heads · d] of each row's last position to the cache [blocks · BLOCK, kv heads · d],
/// in place. Then attends with q [rows, heads, d] -> [rows, heads, d]. `sent` has the tables that were sent in earlier steps.
/// `sinks` `[heads]` has one more logit for each softmax, which no value belongs to.
///
/// # Panics
/// If a sequence is empty, longer than its blocks, or a block is outside the cache.
pub fn decode_attention(
    q: Tensor<3>,
    new: [Tensor<2>; 2],
    [keys, values]: [&mut Tensor<2>; 2],
    at: &CacheView,
    sent: &SentTables,
    scoring: AttentionScoring,
    sinks: Option<&Tensor<1>>,
) -> Tensor<3> {
    if !fused::attends(&q) || sinks.is_some() {
        write_keys_and_values([keys, values], &at.places, new);
        return attention(q, keys, values, at, scoring, sinks);
    }
    let new = if at.has_a_row_per_sequence() {
        Some(new)
    } else {
        write_keys_and_values([keys, values], &at.places, new);
        None
    };
    let tables = at.prepared.get(|_: &Tables| true, || sent.tables(at.tables, at.lens, &q.device()));
    fused::paged_attention(q, new, [keys, values], &tables, scoring)
}

fn attention(
    q: Tensor<3>,
    k: &Tensor<2>,
    v: &Tensor<2>,
    at: &CacheView,
    scoring: AttentionScoring,
    sinks: Option<&Tensor<1>>,
) -> Tensor<3> {
    match (flex_f32(&q), flex_f32(k), flex_f32(v)) {
        (Some(qs), Some(ks), Some(vs)) => {
            let [rows, heads, d] = q.dims();
            let sinks = sinks.map(|sinks| to_host(sinks.clone()));
            let shape = [rows, heads, k.dims()[1] / d, d];
            let out = flex(f32s(&qs), f32s(&ks), f32s(&vs), at, scoring, sinks.as_deref(), shape);
            tensor_from_vec(out, [rows, heads, d], &q.device())
        }
        _ => composed(q, k, v, at, scoring, sinks),
    }
}

fn flex(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    at: &CacheView,
    scoring: AttentionScoring,
    sinks: Option<&[f32]>,
    [rows, heads, kv_heads, d]: [usize; 4],
) -> Vec<f32> {
    let (group, stride) = (heads / kv_heads, kv_heads * d);
    assert!(at.tables.len() == rows && at.lens.len() == rows && q.len() == rows * heads * d && heads == group * kv_heads);
    assert!(at.lens.iter().all(|len| *len > 0));
    let mut out = uninit(q.len());
    let p_out = Out(out.as_mut_ptr().cast());
    (0..rows * kv_heads).into_par_iter().for_each_init(
        || (Vec::new(), Vec::new()),
        |(starts, scores): &mut (Vec<usize>, Vec<f32>), task| {
            let (row, hk) = (task / kv_heads, task % kv_heads);
            starts.clear();
            starts.extend(at.visible_rows(row, scoring.window).map(|place| place * stride + hk * d));
            scores.resize(group * starts.len(), 0.0);
            let first = (row * heads + hk * group) * d;
            gathered_dots(&q[first..first + group * d], d, k, starts, scores);
            for (head, row) in scores.chunks_exact_mut(starts.len()).enumerate() {
                if let Some(cap) = scoring.softcap {
                    row.iter_mut().for_each(|score| *score = cap * (*score * scoring.scale / cap).tanh());
                }
                let scale = if scoring.softcap.is_some() { 1.0 } else { scoring.scale };
                let sink = sinks.map(|sinks| sinks[hk * group + head]);
                let max = sink.map_or(f32::NEG_INFINITY, |sink| sink).max(simd::max_row(row) * scale);
                let sum = simd::exp_sub_sum(row, scale, max) + sink.map_or(0.0, |sink| (sink - max).exp());
                simd::scale(1.0 / sum, row);
            }
            // SAFETY: the heads of one (row, kv head) are adjacent in `out`, and only this task uses them.
            let out = unsafe { p_out.zeroed(first, group * d) };
            gathered_sums(scores, v, starts, d, out);
        },
    );
    // SAFETY: the tasks have written every head of every row.
    unsafe { written(out) }
}

/// The gathered rows of the composed body, for one window.
struct Gather {
    window: Option<usize>,
    /// The number of keys of a sequence, padded.
    keys: usize,
    /// The rows of the cache [rows · keys]; for padding, the sequence's first row.
    index: Tensor<1, Int>,
    /// 0, or −1e30 for padding, [rows, 1, 1, keys].
    unseen: Tensor<4>,
}

impl Gather {
    /// Pads the number of keys to a multiple of [`BLOCK`]: kernels that read several values at once then fit most steps.
    fn new(at: &CacheView, window: Option<usize>, device: &Device) -> Self {
        let seen: Vec<Vec<usize>> = (0..at.lens.len()).map(|row| at.visible_rows(row, window).collect()).collect();
        let keys = seen.iter().map(Vec::len).max().unwrap_or(1).next_multiple_of(BLOCK);
        let padded = seen.iter().flat_map(|seen| (0..keys).map(|p| seen.get(p).copied().unwrap_or(seen[0])));
        let unseen = seen.iter().flat_map(|seen| (0..keys).map(|p| if p < seen.len() { 0.0 } else { -1e30 })).collect();
        let unseen = tensor_from_vec(unseen, [seen.len(), 1, 1, keys], device);
        Self { window, keys, index: index(padded, device), unseen }
    }
}

fn composed(
    q: Tensor<3>,
    k: &Tensor<2>,
    v: &Tensor<2>,
    at: &CacheView,
    scoring: AttentionScoring,
    sinks: Option<&Tensor<1>>,
) -> Tensor<3> {
    let ([rows, heads, d], device, dtype) = (q.dims(), q.device(), q.dtype());
    let kv_heads = k.dims()[1] / d;
    // The dtype of scores and of everything computed from them; matmuls use the dtype of the inputs.
    let wide = if dtype == DType::F64 { FloatDType::F64 } else { FloatDType::F32 };
    let gather = at.prepared.get(|x: &Gather| x.window == scoring.window, || Gather::new(at, scoring.window, &device));
    // [rows, kv heads, keys, d]
    let gathered =
        |x: &Tensor<2>| x.clone().select(0, gather.index.clone()).reshape([rows, gather.keys, kv_heads, d]).swap_dims(1, 2);
    let q = q.reshape([rows, kv_heads, heads / kv_heads, d]);
    let mut scores = cast(q.matmul(gathered(k).swap_dims(2, 3)), wide).mul_scalar(scoring.scale);
    if let Some(cap) = scoring.softcap {
        scores = scores.div_scalar(cap).tanh().mul_scalar(cap);
    }
    let mut scores = scores + cast(gather.unseen.clone(), wide);
    if let Some(sinks) = sinks {
        let group = heads / kv_heads;
        let sinks = cast(sinks.clone(), wide).reshape([1, kv_heads, group, 1]).expand([rows, kv_heads, group, 1]);
        scores = Tensor::cat(vec![scores, sinks], 3);
    }
    let p = activation::softmax(scores, 3);
    let p = if sinks.is_some() { p.narrow(3, 0, gather.keys) } else { p }.cast(dtype);
    p.matmul(gathered(v)).reshape([rows, heads, d])
}

/// Writes rows [n, width] at `places` of a cache [.., width], in place.
pub fn write_rows(cache: &mut Tensor<2>, places: &CacheRows, rows: Tensor<2>) {
    let width = cache.dims()[1];
    match (flex_f32(cache), flex_f32(&rows)) {
        (Some(view), Some(rows)) => {
            drop(view); // A second owner would make the write a copy of the whole cache.
            in_place(cache, |cache| {
                for (place, row) in places.rows.iter().zip(f32s(&rows).chunks_exact(width)) {
                    cache[place * width..(place + 1) * width].copy_from_slice(row);
                }
            });
        }
        _ => {
            let places = places.index(&cache.device());
            cache.inplace(|cache| {
                let [cache] = assign_rows([cache], places, [rows]);
                cache
            });
        }
    }
}

/// Does what [`write_rows`] does for keys and values [n, width] and their caches, with one launch on a GPU.
pub(crate) fn write_keys_and_values([keys, values]: [&mut Tensor<2>; 2], places: &CacheRows, [k, v]: [Tensor<2>; 2]) {
    if flex_f32(keys).is_some() {
        write_rows(keys, places, k);
        write_rows(values, places, v);
        return;
    }
    let places = places.index(&keys.device());
    keys.inplace(|old_keys| {
        let mut new_keys = None;
        values.inplace(|old_values| {
            let [keys, values] = assign_rows([old_keys, old_values], places, [k, v]);
            new_keys = Some(keys);
            values
        });
        new_keys.expect("both were written")
    });
}

/// Copies rows of a cache [.., width], in place. `from` and `to` must not overlap.
pub(crate) fn copy_rows(cache: &mut Tensor<2>, from: &CacheRows, to: &CacheRows) {
    let width = cache.dims()[1];
    if flex_f32(cache).is_some() {
        in_place(cache, |cache| {
            for (from, to) in from.rows.iter().zip(&to.rows) {
                cache.copy_within(from * width..(from + 1) * width, to * width);
            }
        });
    } else {
        let rows = cache.clone().select(0, from.index(&cache.device()));
        write_rows(cache, to, rows);
    }
}

pub(super) fn in_place(cache: &mut Tensor<2>, change: impl FnOnce(&mut [f32])) {
    cache.inplace(|cache| match cache.clone().try_into_primitive::<Flex>() {
        Ok(alias) => {
            drop(cache);
            let mut contiguous = whole_buffer(alias);
            change(contiguous.storage_mut::<f32>());
            Tensor::from_primitive::<Flex>(contiguous)
        }
        Err(_) => cache,
    });
}
