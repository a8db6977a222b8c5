//! The maths of the fused operations, composed of burn's own operations, for comparison in tests and benchmarks.

use burn::prelude::*;
use burn::tensor::{Distribution, activation};
use burnish::model::ops::{Act, AttentionScoring, Packed};

/// The CPU, which has f64 to compare with.
pub(crate) fn device() -> Device {
    Device::flex().autodiff()
}

pub(crate) fn rnd<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 2.0), device)
}

pub(crate) const ACTS: [Act; 5] = [Act::Silu, Act::Gelu, Act::GeluTanh, Act::Relu, Act::SquaredRelu];

/// The definition of an activation, in ordinary operations.
pub(crate) fn plain_act(x: Tensor<2>, act: Act) -> Tensor<2> {
    match act {
        Act::Silu => activation::silu(x),
        Act::Gelu => x.clone() * ((x * 0.5f64.sqrt()).erf() + 1.0) * 0.5,
        Act::GeluTanh => {
            let inner = (x.clone() + x.clone().powf_scalar(3.0) * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
            x * (inner.tanh() + 1.0) * 0.5
        }
        Act::Relu => activation::relu(x),
        Act::SquaredRelu => activation::relu(x).powi_scalar(2),
    }
}

/// The attention of each segment by itself, with its keys repeated for each head and an explicit mask.
pub(crate) fn plain_attention([q, k, v]: [Tensor<3>; 3], packed: &Packed, s: AttentionScoring) -> Tensor<3> {
    let group = q.dims()[1] / k.dims()[1];
    let parts = packed.segments().filter(|x| !x.rows.is_empty()).map(|x| {
        let keys = |t: &Tensor<3>| {
            let own = t.clone().slice([x.rows.clone()]);
            let all = if x.stem.is_empty() { own } else { Tensor::cat(vec![t.clone().slice([x.stem.clone()]), own], 0) };
            let [n, heads, d] = all.dims();
            all.reshape([n, heads, 1, d]).expand([n, heads, group, d]).reshape([n, heads * group, d]).swap_dims(0, 1)
        };
        let queries = q.clone().slice([x.rows.clone()]).swap_dims(0, 1);
        let scores = queries.matmul(keys(&k).swap_dims(1, 2)) * s.scale;
        let scores = match s.softcap {
            Some(cap) => (scores / cap).tanh() * cap,
            None => scores,
        };
        let (n, m) = (x.rows.len(), x.keys());
        let seen = |i: usize, j: usize| j <= m - n + i && s.window.is_none_or(|w| j + w > m - n + i);
        let mask: Vec<f32> = (0..n * m).map(|i| if seen(i / m, i % m) { 0.0 } else { -1e30 }).collect();
        let mask = Tensor::<3>::from_data(TensorData::new(mask, [1, n, m]), &q.device()).cast(q.dtype());
        activation::softmax(scores + mask, 2).matmul(keys(&v)).swap_dims(0, 1)
    });
    Tensor::cat(parts.collect(), 0)
}
