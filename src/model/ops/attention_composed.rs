//! Attention of packed sequences from ordinary tensor operations, which CUDA runs: segments are gathered into padded
//! [segments, longest] blocks, and results gathered back. Gradients too are gathers and sums, never scattered additions,
//! so that their order is fixed.

use std::sync::Arc;

use burn::backend::{Backend, Flex, TensorMetadata, get_or_init_device_settings, ops::AttentionModuleOptions, tensor::*};
use burn::tensor::{DType, Shape, TensorData};

use super::autodiff::wide;
use super::packed::{Packed, Pattern, Scoring, Segment};

/// Blocks of queries and keys are padded to multiples of this. Kernels that read several numbers at once then fit every layout,
/// and are not compiled again for the next one.
const STEP: usize = 16;
/// Blocks are padded to multiples of this for the backend's fused attention, whose kernels always take this many queries at once.
const FUSED_STEP: usize = 128;

/// The places of a layout's rows in the padded blocks, as indices on the device.
struct Blocks<B: Backend> {
    device: B::Device,
    step: usize,
    segments: usize,
    /// The longest segment and the most keys of a segment, both padded.
    queries: usize,
    keys: usize,
    /// The row of each padded query and key; row 0 for padding.
    query_rows: IntTensor<B>,
    key_rows: IntTensor<B>,
    /// The position of each padded query in its sequence; −1 for padding, which sees nothing.
    positions: IntTensor<B>,
    /// The padded place of each row among the queries, and among the keys of its own segment.
    query_places: IntTensor<B>,
    key_places: IntTensor<B>,
    stems: Option<Stems<B>>,
}

/// The rows that several segments share.
struct Stems<B: Backend> {
    /// The padded places of each shared row beside its own, [shared · most]; one past the last place where a row has fewer.
    places: IntTensor<B>,
    most: usize,
    shared: usize,
    /// For each row, its number among the shared rows plus 1; 0 for rows of a single segment.
    of_row: IntTensor<B>,
}

fn int<B: Backend>(values: impl IntoIterator<Item = i64>, device: &B::Device) -> IntTensor<B> {
    let values: Vec<i64> = values.into_iter().collect();
    let n = values.len();
    let dtype: DType = get_or_init_device_settings::<B>(device).int_dtype.into();
    B::int_from_data(TensorData::new(values, [n]).convert_dtype(dtype), device)
}

impl<B: Backend> Blocks<B> {
    /// Makes the indices of a layout, for the first layer of a pass.
    fn of(packed: &Packed, device: &B::Device, step: usize) -> Arc<Self> {
        packed.prepared.get(|x: &Self| x.step == step && x.device == *device, || Self::new(packed, device, step))
    }

    fn new(packed: &Packed, device: &B::Device, step: usize) -> Self {
        let segments: Vec<&Segment> = packed.segments().filter(|s| !s.rows.is_empty()).collect();
        let longest = |length: fn(&Segment) -> usize| segments.iter().map(|s| length(s)).max().unwrap_or(0);
        let most = |length: fn(&Segment) -> usize| longest(length).next_multiple_of(step);
        let (queries, keys) = (most(|s| s.rows.len()), most(Segment::keys));
        let padded = |rows: Vec<usize>, to: usize| rows.into_iter().map(Some).chain(std::iter::repeat(None)).take(to);
        let row = |row: Option<usize>| row.unwrap_or(0) as i64;
        let query_rows = segments.iter().flat_map(|s| padded(s.rows.clone().collect(), queries)).map(row);
        let key_rows = segments.iter().flat_map(|s| padded(s.stem.clone().chain(s.rows.clone()).collect(), keys)).map(row);
        let positions = segments.iter().flat_map(|s| padded((s.stem.len()..s.keys()).collect(), queries));
        let places = |of: &dyn Fn(usize, &Segment) -> usize| {
            let mut places = vec![0; packed.rows()];
            for (i, s) in segments.iter().enumerate() {
                s.rows.clone().enumerate().for_each(|(offset, row)| places[row] = (of(i, s) + offset) as i64);
            }
            int::<B>(places, device)
        };
        Self {
            device: device.clone(),
            step,
            query_rows: int::<B>(query_rows, device),
            key_rows: int::<B>(key_rows, device),
            positions: int::<B>(positions.map(|p| p.map_or(-1, |p| p as i64)), device),
            query_places: places(&|i, _| i * queries),
            key_places: places(&|i, s| i * keys + s.stem.len()),
            stems: Stems::of(&segments, packed.rows(), keys, device),
            segments: segments.len(),
            queries,
            keys,
        }
    }

    /// Pads queries: [rows, heads, d] -> [segments, kv heads, group · queries, d].
    fn queries(&self, x: FloatTensor<B>, kv_heads: usize) -> FloatTensor<B> {
        let (group, d) = (x.shape()[1] / kv_heads, x.shape()[2]);
        let x = B::float_select(x, 0, self.query_rows.clone());
        let x = B::float_reshape(x, Shape::from([self.segments, self.queries, kv_heads, group, d]));
        let x = B::float_permute(x, &[0, 2, 3, 1, 4]);
        B::float_reshape(x, Shape::from([self.segments, kv_heads, group * self.queries, d]))
    }

    /// The inverse of [`Blocks::queries`].
    fn rows(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        let s = x.shape();
        let (kv_heads, group, d) = (s[1], s[2] / self.queries, s[3]);
        let x = B::float_reshape(x, Shape::from([self.segments, kv_heads, group, self.queries, d]));
        let x = B::float_permute(x, &[0, 3, 1, 2, 4]);
        let x = B::float_reshape(x, Shape::from([self.segments * self.queries, kv_heads * group, d]));
        B::float_select(x, 0, self.query_places.clone())
    }

    /// Pads keys: [rows, kv heads, d] -> [segments, kv heads, keys, d].
    fn keys(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        let (kv_heads, d) = (x.shape()[1], x.shape()[2]);
        let x = B::float_select(x, 0, self.key_rows.clone());
        B::float_permute(B::float_reshape(x, Shape::from([self.segments, self.keys, kv_heads, d])), &[0, 2, 1, 3])
    }

    /// Sums over all places of each row: [segments, kv heads, keys, d] -> [rows, kv heads, d].
    fn sum_of_keys(&self, x: FloatTensor<B>) -> FloatTensor<B> {
        let (kv_heads, d) = (x.shape()[1], x.shape()[3]);
        let x = B::float_permute(x, &[0, 2, 1, 3]);
        let x = B::float_reshape(x, Shape::from([self.segments * self.keys, kv_heads, d]));
        let own = B::float_select(x.clone(), 0, self.key_places.clone());
        let Some(stems) = &self.stems else { return own };
        let (dtype, x, own) = (x.dtype(), wide::<B>(x), wide::<B>(own));
        let zero = || B::float_zeros(Shape::from([1, kv_heads, d]), &x.device(), x.dtype().into());
        let parts = B::float_select(B::float_cat(vec![x.clone(), zero()], 0), 0, stems.places.clone());
        let sums = B::float_sum_dim(B::float_reshape(parts, Shape::from([stems.shared, stems.most, kv_heads, d])), 1);
        let sums = B::float_cat(vec![zero(), B::float_reshape(sums, Shape::from([stems.shared, kv_heads, d]))], 0);
        B::float_cast(B::float_add(own, B::float_select(sums, 0, stems.of_row.clone())), dtype.into())
    }

    /// The mask [segments, 1, 1, queries, keys]: true where a query does not see a key.
    fn unseen(&self, window: Option<usize>) -> BoolTensor<B> {
        let device = self.device.clone();
        let out = get_or_init_device_settings::<B>(&device).bool_dtype;
        let q = B::int_reshape(self.positions.clone(), Shape::from([self.segments, 1, 1, self.queries, 1]));
        let k = int::<B>(0..self.keys as i64, &device);
        let k = B::int_reshape(k, Shape::from([1, 1, 1, 1, self.keys]));
        let later = B::int_lower(q.clone(), k.clone(), out);
        match window {
            Some(window) => {
                let reach = B::int_sub_scalar(q, (window as i64).into());
                B::bool_or(later, B::int_lower_equal(k, reach, out))
            }
            None => later,
        }
    }
}

/// The result of [`Blocks::unseen`] for a window.
struct Unseen<B: Backend> {
    device: B::Device,
    window: Option<usize>,
    mask: BoolTensor<B>,
}

impl<B: Backend> Unseen<B> {
    fn of(packed: &Packed, blocks: &Blocks<B>, window: Option<usize>) -> BoolTensor<B> {
        let make = || Self { device: blocks.device.clone(), window, mask: blocks.unseen(window) };
        packed.prepared.get(|x: &Self| x.window == window && x.device == blocks.device, make).mask.clone()
    }
}

impl<B: Backend> Stems<B> {
    fn of(segments: &[&Segment], rows: usize, keys: usize, device: &B::Device) -> Option<Self> {
        let mut places: Vec<Vec<i64>> = vec![Vec::new(); rows];
        for (i, s) in segments.iter().enumerate() {
            s.stem.clone().enumerate().for_each(|(offset, row)| places[row].push((i * keys + offset) as i64));
        }
        let most = places.iter().map(Vec::len).max().filter(|&most| most > 0)?;
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
        let places = places.flat_map(|p| p.into_iter().chain(std::iter::repeat(nowhere)).take(most));
        Some(Self { places: int::<B>(places, device), most, shared: shared as usize, of_row: int::<B>(of_row, device) })
    }
}

/// The passes over products q·kᵀ between the products of attention.
pub trait ScoreKernels: Backend {
    /// See [`probabilities`].
    fn probabilities(products: FloatTensor<Self>, seen: &Seen<Self>) -> [FloatTensor<Self>; 2] {
        probabilities::<Self>(products, seen)
    }
    /// See [`gradients`].
    fn gradients(
        products: FloatTensor<Self>,
        dp: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        delta: FloatTensor<Self>,
        seen: &Seen<Self>,
    ) -> [FloatTensor<Self>; 2] {
        gradients::<Self>(products, dp, lse, delta, seen)
    }
}

impl ScoreKernels for Flex {}

/// What turns products q·kᵀ [segments, kv heads, group · queries, keys] into scores: who sees what, and the scoring.
pub struct Seen<B: Backend> {
    blocks: Arc<Blocks<B>>,
    pattern: Pattern,
}

impl<B: Backend> Seen<B> {
    fn of(q: &FloatTensor<B>, pattern: &Pattern) -> Self {
        Self { blocks: Blocks::<B>::of(&pattern.packed, &q.device(), STEP), pattern: pattern.clone() }
    }

    pub fn scoring(&self) -> Scoring {
        self.pattern.scoring
    }

    /// The padded queries of a segment.
    pub fn queries(&self) -> usize {
        self.blocks.queries
    }

    /// The position of each padded query in its sequence [segments · queries]; −1 for padding, which sees nothing.
    pub fn positions(&self) -> IntTensor<B> {
        self.blocks.positions.clone()
    }

    /// The scores, f32, −1e30 where a key is unseen; and tanh(score / cap) before the mask, where scores are capped.
    fn scores(&self, products: FloatTensor<B>) -> (FloatTensor<B>, Option<FloatTensor<B>>) {
        let (blocks, scoring) = (&self.blocks, self.scoring());
        let scores = B::float_mul_scalar(wide::<B>(products), scoring.scale.into());
        let tanh = scoring.softcap.map(|cap| B::float_tanh(B::float_div_scalar(scores.clone(), cap.into())));
        let scores = match (&tanh, scoring.softcap) {
            (Some(tanh), Some(cap)) => B::float_mul_scalar(tanh.clone(), cap.into()),
            _ => scores,
        };
        let flat = scores.shape();
        let shape = Shape::from([blocks.segments, flat[1], flat[2] / blocks.queries, blocks.queries, blocks.keys]);
        let unseen = B::bool_expand(Unseen::of(&self.pattern.packed, blocks, scoring.window), shape.clone());
        let scores = B::float_mask_fill(B::float_reshape(scores, shape), unseen, (-1e30).into());
        (B::float_reshape(scores, flat), tanh)
    }
}

/// The softmax of the scores that `products` stand for, in their dtype, and the log-sum-exp of each row, f32
/// [segments, kv heads, group · queries, 1].
pub fn probabilities<B: Backend>(products: FloatTensor<B>, seen: &Seen<B>) -> [FloatTensor<B>; 2] {
    let dtype = products.dtype();
    let (scores, _) = seen.scores(products);
    let max = B::float_max_dim(scores.clone(), 3);
    let e = B::float_exp(B::float_sub(scores, max.clone()));
    let sum = B::float_sum_dim(e.clone(), 3);
    [B::float_cast(B::float_div(e, sum.clone()), dtype.into()), B::float_add(max, B::float_log(sum))]
}

/// The softmax again, from the log-sum-exp of each row, and the gradient of the products from that of the softmax, `dp`, and the sum
/// `delta` of its rows weighted by the softmax; both in the dtype of the products.
pub fn gradients<B: Backend>(
    products: FloatTensor<B>,
    dp: FloatTensor<B>,
    lse: FloatTensor<B>,
    delta: FloatTensor<B>,
    seen: &Seen<B>,
) -> [FloatTensor<B>; 2] {
    let dtype = products.dtype();
    let (scores, tanh) = seen.scores(products);
    let p = B::float_exp(B::float_sub(scores, lse));
    let dp = B::float_sub(wide::<B>(dp), delta);
    let ds = B::float_mul_scalar(B::float_mul(p.clone(), dp), seen.scoring().scale.into());
    let ds = match tanh {
        Some(tanh) => B::float_sub(ds.clone(), B::float_mul(ds, B::float_mul(tanh.clone(), tanh))),
        None => ds,
    };
    [p, ds].map(|x| B::float_cast(x, dtype.into()))
}

pub fn forward<B: ScoreKernels>([q, k, v]: [FloatTensor<B>; 3], pattern: &Pattern) -> (FloatTensor<B>, FloatTensor<B>) {
    let (rows, heads, kv_heads) = (q.shape()[0], q.shape()[1], k.shape()[1]);
    let seen = Seen::<B>::of(&q, pattern);
    let blocks = &seen.blocks;
    let products = B::float_matmul(blocks.queries(q, kv_heads), B::float_transpose(blocks.keys(k)));
    let [p, lse] = B::probabilities(products, &seen);
    (blocks.rows(B::float_matmul(p, blocks.keys(v))), B::float_reshape(blocks.rows(lse), Shape::from([rows, heads])))
}

/// Computes [`forward`] without the log-sum-exp, by the backend's own fused attention where that supports the pattern. It is not
/// used in f32: on CUDA it multiplies in f16 whatever the inputs are.
pub fn output<B: ScoreKernels>(qkv: [FloatTensor<B>; 3], pattern: &Pattern) -> FloatTensor<B> {
    let (s, heads, d) = (pattern.scoring, qkv[0].shape()[1], qkv[0].shape()[2]);
    let plain = s.softcap.is_none() && s.window.is_none() && s.scale == 1.0 / (d as f32).sqrt();
    if !plain || qkv[0].dtype() == DType::F32 || pattern.packed.segments().any(|s| !s.stem.is_empty()) {
        return forward::<B>(qkv, pattern).0;
    }
    let blocks = Blocks::<B>::of(&pattern.packed, &qkv[0].device(), FUSED_STEP);
    // The padding comes after a sequence, where causal queries do not look.
    let [q, k, v] = qkv.map(|x| {
        let (kv_heads, shape) = (x.shape()[1], Shape::from([blocks.segments, heads, blocks.keys, d]));
        let x = B::float_reshape(blocks.keys(x), Shape::from([blocks.segments, kv_heads, 1, blocks.keys, d]));
        let repeated = Shape::from([blocks.segments, kv_heads, heads / kv_heads, blocks.keys, d]);
        B::float_reshape(B::float_expand(x, repeated), shape)
    });
    let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
    blocks.rows(B::attention(q, k, v, None, None, options))
}

/// Returns the gradients of q, k and v; `out` and `lse` are what [`forward`] returned.
pub fn backward<B: ScoreKernels>(
    [q, k, v]: [FloatTensor<B>; 3],
    out: FloatTensor<B>,
    lse: FloatTensor<B>,
    dy: FloatTensor<B>,
    pattern: &Pattern,
) -> [FloatTensor<B>; 3] {
    let (kv_heads, [rows, heads]) = (k.shape()[1], [lse.shape()[0], lse.shape()[1]]);
    let seen = Seen::<B>::of(&q, pattern);
    let blocks = &seen.blocks;
    let (q, k, v) = (blocks.queries(q, kv_heads), blocks.keys(k), blocks.keys(v));
    let delta = B::float_sum_dim(B::float_mul(wide::<B>(out), wide::<B>(dy.clone())), 2);
    let [lse, delta] = [lse, delta].map(|x| blocks.queries(B::float_reshape(x, Shape::from([rows, heads, 1])), kv_heads));
    let dy = blocks.queries(dy, kv_heads);
    let products = B::float_matmul(q.clone(), B::float_transpose(k.clone()));
    let dp = B::float_matmul(dy.clone(), B::float_transpose(v));
    let [p, ds] = B::gradients(products, dp, lse, delta, &seen);
    let dv = B::float_matmul(B::float_transpose(p), dy);
    let dq = B::float_matmul(ds.clone(), k);
    let dk = B::float_matmul(B::float_transpose(ds), q);
    [blocks.rows(dq), blocks.sum_of_keys(dk), blocks.sum_of_keys(dv)]
}
