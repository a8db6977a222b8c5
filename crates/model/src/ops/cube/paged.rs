//! Attention of one new position per row over its blocks of a KV cache. One cube per row and head reads the keys in tiles of one
//! key per unit, with a running maximum and sum (Milakov & Gimelshein 2018, <https://arxiv.org/abs/1805.02867>). No key or value
//! is copied, and no score leaves the cube.

use burn::backend::TensorMetadata;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, dense, elem, empty_like, grid};
use super::rows::Rows;
use super::sum::{max_of_units, sum_of_units};
use crate::ops::block_tables::BLOCK;
use crate::ops::packed::AttentionScoring;

/// The largest size of a head: each unit of a cube sums one element.
pub(crate) const LARGEST_HEAD: usize = 256;

/// Below every score.
const LOWEST: f32 = -1.0e30;

/// Compile-time parameters of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PagedParams {
    d: usize,
    capped: bool,
    /// True if `new_k` and `new_v` have the keys and values of the last positions, to be written to the cache.
    writes: bool,
    units: usize,
}

/// Returns the index of a position's keys or values in a cache with rows `stride` elements apart.
#[cube]
fn place<I: Int>(table: &[I], first: usize, position: usize, stride: usize) -> usize {
    let block = comptime!(BLOCK);
    (usize::cast_from(table[first + position / block]) * block + position % block) * stride
}

#[cube(launch)]
fn attend<Q: Float, I: Int>(
    q: &[Q],
    new_k: &[Q],
    new_v: &[Q],
    k: &mut [Q],
    v: &mut [Q],
    table: &[I],
    lens: &[I],
    out: &mut [Q],
    rows: usize,
    heads: usize,
    group: usize,
    table_width: usize,
    k_stride: usize,
    v_stride: usize,
    window: usize,
    scale: f32,
    cap: f32,
    #[comptime] params: PagedParams,
    #[define(Q, I)] _dtypes: [ElemType; 2],
) {
    let row = CUBE_POS / heads;
    if row >= rows {
        terminate!();
    }
    let d = comptime!(params.d);
    let units = comptime!(params.units);
    let unit = UNIT_POS as usize;
    let head = CUBE_POS % heads;
    let width = heads / group * d;
    let column = head / group * d;
    let own = row * width + column;
    let blocks = row * table_width;
    let len = usize::cast_from(lens[row]);
    let last = len - 1;
    let mut first = 0usize;
    if len > window {
        first = len - window;
    }

    let mut query = Shared::<[f32]>::new_slice(d);
    let mut weights = Shared::<[f32]>::new_slice(units);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    for i in range_stepped(unit, d, units) {
        query[i] = f32::cast_from(q[(row * heads + head) * d + i]);
    }
    sync_cube();

    // While values are summed, a unit handles one element of the output and every `parts`-th key.
    let parts = comptime!(units / d);
    let part = unit / d;
    let i = unit % d;
    let mut max = f32::new(LOWEST);
    let mut sum = 0f32;
    let mut total = 0f32;
    let mut from = first;
    while from < len {
        let position = from + unit;
        let mut score = f32::new(LOWEST);
        if position < len {
            let mut dot = 0f32;
            if comptime!(params.writes) && position == last {
                for j in 0..d {
                    dot += query[j] * f32::cast_from(new_k[own + j]);
                }
            } else {
                let start = place::<I>(table, blocks, position, k_stride) + column;
                for j in 0..d {
                    dot += query[j] * f32::cast_from(k[start + j]);
                }
            }
            score = dot * scale;
            if comptime!(params.capped) {
                score = cap * f32::tanh(score / cap);
            }
        }
        let tile = max_of_units(score, &mut scratch, units);
        let mut larger = max;
        if tile > larger {
            larger = tile;
        }
        let mut weight = 0f32;
        if position < len {
            weight = f32::exp(score - larger);
        }
        weights[unit] = weight;
        let fading = f32::exp(max - larger);
        sum = sum * fading + sum_of_units(weight, &mut scratch, units);
        total *= fading;
        if part < parts {
            let mut end = len - from;
            if end > units {
                end = units;
            }
            for t in range_stepped(part, end, parts) {
                let position = from + t;
                if comptime!(params.writes) && position == last {
                    total += weights[t] * f32::cast_from(new_v[own + i]);
                } else {
                    total += weights[t] * f32::cast_from(v[place::<I>(table, blocks, position, v_stride) + column + i]);
                }
            }
        }
        sync_cube();
        max = larger;
        from += units;
    }

    scratch[unit] = total;
    sync_cube();
    if unit < d {
        let mut value = 0f32;
        for part in 0..parts {
            value += scratch[part * d + unit];
        }
        out[(row * heads + head) * d + unit] = Q::cast_from(value / sum);
    }
    if comptime!(params.writes) && head / group * group == head {
        let k_start = place::<I>(table, blocks, last, k_stride) + column;
        let v_start = place::<I>(table, blocks, last, v_stride) + column;
        for i in range_stepped(unit, d, units) {
            k[k_start + i] = new_k[own + i];
            v[v_start + i] = new_v[own + i];
        }
    }
}

/// The cache of a layer [blocks · BLOCK, kv heads · d], whose rows may be padded as on CUDA, and the block tables of the rows.
pub(crate) struct Paged {
    pub keys: CubeTensor,
    pub values: CubeTensor,
    /// The blocks of each row's sequence [rows, the longest table's length], in order.
    pub table: CubeTensor,
    /// The length of each row's sequence, including the new position, `[rows]`.
    pub lens: CubeTensor,
}

/// Attends with q [rows, heads, d] -> [rows, heads, d]. `new` keys and values [rows, kv heads · d] of each sequence's last
/// position are also written to the cache, in place. No two rows may then belong to one sequence.
pub(crate) fn decode_attention(
    q: CubeTensor,
    cache: Paged,
    new: Option<[CubeTensor; 2]>,
    scoring: AttentionScoring,
) -> CubeTensor {
    let (q, keys, values) = (dense(q), Rows::new(cache.keys), Rows::new(cache.values));
    let out = empty_like(&q);
    let [rows, heads, d] = [q.shape()[0], q.shape()[1], q.shape()[2]];
    assert!(d <= LARGEST_HEAD, "a head of {d} elements");
    let units = d.next_power_of_two().clamp(128, LARGEST_HEAD);
    let group = heads / (keys.width / d);
    let writes = new.is_some();
    let [new_k, new_v] = new.unwrap_or_else(|| [q.clone(), q.clone()]).map(dense);
    let params = PagedParams { d, capped: scoring.softcap.is_some(), writes, units };
    attend::launch(
        &q.client,
        grid(rows * heads),
        CubeDim::new_1d(units as u32),
        buffer(&q),
        buffer(&new_k),
        buffer(&new_v),
        keys.buffer(),
        values.buffer(),
        buffer(&cache.table),
        buffer(&cache.lens),
        buffer(&out),
        rows,
        heads,
        group,
        cache.table.shape().num_elements() / rows,
        keys.stride,
        values.stride,
        scoring.window.unwrap_or(i32::MAX as usize),
        scoring.scale,
        scoring.softcap.unwrap_or(1.0),
        params,
        [elem(&q), elem(&cache.lens)],
    );
    out
}
