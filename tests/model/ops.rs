//! Fused operations against the same maths composed of burn's own ops (values and gradients), and invariance under batching.

use std::cell::RefCell;
use std::ops::Range;

use burn::prelude::*;
use burn::tensor::{FloatDType, activation};
use burnish::model::ops::{
    self, Act, AttentionScoring, BLOCK, CacheView, Compared, Divergence, Head, Packed, SentTables, Softcap, fused, head_backward,
    head_fused_backward, head_stats,
};
use burnish::model::token_stats::{TokenGrads, TokenStats};

use crate::device::{cases, device as named, for_the_cpu, on_cpu};
use crate::plain::{ACTS, device, plain_act, plain_attention, rnd};

fn close(name: &str, a: Tensor<2>, b: Tensor<2>) {
    let scale: f32 = b.clone().abs().max().into_scalar();
    let err: f32 = (a - b).abs().max().into_scalar();
    assert!(err <= 1e-5 * scale, "{name}: largest error {err}, largest value {scale}");
}

/// Devices and dtypes of the compared bodies. On the CPU, f32 tensors take the fused bodies, and f64 tensors those composed of
/// burn's operations. On the test device, its kernels run.
fn bodies() -> Vec<(Device, FloatDType)> {
    match on_cpu() {
        true => vec![(device(), FloatDType::F32), (device(), FloatDType::F64)],
        false => vec![(named().autodiff(), FloatDType::F32)],
    }
}

/// The same values on another device, outside any graph.
fn moved<const D: usize>(x: &Tensor<D>, device: &Device) -> Tensor<D> {
    Tensor::from_data(x.clone().into_data(), device)
}

/// Compares a fused operation with the plain composition in f64 on the CPU: values, and gradients of all inputs.
fn same<const N: usize>(
    name: &str,
    x: [Tensor<2>; N],
    fused: impl Fn([Tensor<2>; N]) -> Tensor<2>,
    plain: impl Fn([Tensor<2>; N]) -> Tensor<2>,
) {
    let weights = RefCell::new(None);
    let run = |f: &dyn Fn([Tensor<2>; N]) -> Tensor<2>, device: &Device, dtype: FloatDType| {
        let x = x.each_ref().map(|x| moved(x, device).require_grad());
        let y = f(x.clone().map(|x| x.cast(dtype)));
        let c = weights.borrow_mut().get_or_insert_with(|| rnd::<2>(y.dims(), &Device::flex())).clone();
        let g = (y.clone() * moved(&c, device).cast(dtype)).sum().backward();
        let gradients = x.iter().map(|x| x.grad(&g).unwrap());
        let all = std::iter::once(y.inner()).chain(gradients).map(|x| x.cast(FloatDType::F32));
        all.map(|x| moved(&x, &Device::flex())).collect::<Vec<_>>()
    };
    let expected = run(&plain, &device(), FloatDType::F64);
    for (device, dtype) in bodies() {
        let untracked = fused(x.each_ref().map(|x| moved(x, &device).inner().cast(dtype))).cast(FloatDType::F32);
        close(&format!("{name} {dtype:?} untracked"), moved(&untracked, &Device::flex()), expected[0].clone());
        for (i, (got, expected)) in run(&fused, &device, dtype).into_iter().zip(&expected).enumerate() {
            close(&format!("{name} {dtype:?} {i}"), got, expected.clone());
        }
    }
}

#[test]
fn activations() {
    let d = device();
    for act in ACTS {
        let name = format!("{act:?}");
        same(&name, [rnd([67, 129], &d)], |[x]| ops::act(x, act), |[x]| plain_act(x, act));
        let [g, u] = [(); 2].map(|_| rnd([67, 129], &d));
        same(&name, [g, u], |[g, u]| ops::glu(g, u, act), |[g, u]| plain_act(g, act) * u);
    }
    // Strided inputs, one of them untracked.
    let (g, c) = (rnd([67, 129], &d).require_grad(), rnd([67, 129], &d));
    let y = ops::glu(g.clone().transpose(), c.clone().transpose(), Act::Silu);
    let z = activation::silu(g.clone().transpose()) * c.clone().transpose();
    close("strided", y.clone().inner(), z.clone().inner());
    close("strided d gate", g.grad(&y.sum().backward()).unwrap(), g.grad(&z.sum().backward()).unwrap());
}

/// Each activation over its range, relative to the exact value, so that small tails are not lost in the rounding of large values.
#[test]
fn activations_are_accurate() {
    let x: Vec<f32> = (-6000..=2000).map(|i| i as f32 / 1000.0).collect();
    let x = Tensor::<2>::from_data(TensorData::new(x, [1, 8001]), &Device::flex());
    for (act, tolerance) in [(Act::Silu, 1e-6), (Act::Gelu, 3e-6), (Act::GeluTanh, 5e-6)] {
        // In the plain forms, 1 + erf and 1 + tanh cancel, so the exact values are computed in f64.
        let expected = plain_act(x.clone().cast(FloatDType::F64), act);
        let error = (ops::act(x.clone(), act).cast(FloatDType::F64) - expected.clone()).abs() / (expected.abs() + 1e-30);
        let error: f64 = error.max().into_scalar();
        assert!(error < tolerance, "{act:?}: {error}");
    }
    let e = Tensor::<2>::from_floats([[-200.0, -90.0, 0.0, 90.0, 200.0]], &Device::flex());
    for act in ACTS {
        let y: Vec<f32> = ops::glu(e.clone(), e.ones_like(), act).into_data().try_to_vec().unwrap();
        let top = if act == Act::SquaredRelu { 40_000.0 } else { 200.0 };
        assert!(y.iter().all(|x| x.is_finite()) && y[4] == top && y[0].abs() < 1e-30, "extremes of {act:?}: {y:?}");
    }
}

#[test]
fn norms() {
    let d = device();
    for offset in [0.0, 1.0] {
        same(
            "rms_norm",
            [rnd([185, 83], &d), rnd([1, 83], &d)],
            |[x, w]| ops::rms_norm(x.reshape([5, 37, 83]), w.reshape([83]), 1e-5, offset).reshape([185, 83]),
            |[x, w]| x.clone() / (x.powf_scalar(2.0).mean_dim(1) + 1e-5).sqrt() * (w + offset),
        );
    }
    same(
        "layer_norm",
        [rnd([185, 83], &d) + 3.0, rnd([1, 83], &d), rnd([1, 83], &d)],
        |[x, w, b]| ops::layer_norm(x, w.reshape([83]), b.reshape([83]), 1e-5),
        |[x, w, b]| {
            let x = x.clone() - x.mean_dim(1);
            x.clone() / (x.powf_scalar(2.0).mean_dim(1) + 1e-5).sqrt() * w + b
        },
    );
}

#[test]
fn linear() {
    if !for_the_cpu("products are burn's on a GPU") {
        return;
    }
    let d = device();
    for (n, inner, out) in [(17, 12, 9), (333, 250, 131)] {
        let [x, w, b] = [[n, inner], [out, inner], [1, out]].map(|shape| rnd(shape, &d));
        same("linear", [x.clone(), w.clone()], |[x, w]| ops::linear(x, w, None), |[x, w]| x.matmul(w.transpose()));
        same(
            "linear with bias",
            [x, w, b],
            |[x, w, b]| ops::linear(x, w, Some(b.reshape([out]))),
            |[x, w, b]| x.matmul(w.transpose()) + b,
        );
    }
}

#[test]
fn attention() {
    let plain = AttentionScoring { scale: 1.0 / (8f32).sqrt(), softcap: None, window: None };
    let alone: &[(usize, &[usize])] = &[(130, &[]), (1, &[]), (70, &[])];
    let trees: &[(usize, &[usize])] = &[(3, &[70, 0, 1, 9]), (5, &[]), (67, &[2, 131])];
    for (layout, heads, kv_heads) in cases([(trees, 6, 2), (alone, 4, 2), (trees, 3, 3), (alone, 5, 1)], 1) {
        for scoring in [
            plain,
            AttentionScoring { scale: 0.2, window: Some(7), ..plain },
            AttentionScoring { softcap: Some(3.0), ..plain },
            AttentionScoring { scale: 0.5, softcap: Some(20.0), window: Some(69) },
        ] {
            same_attention(layout, [heads, kv_heads, 8], scoring);
        }
    }
    same_attention(trees, [6, 2, 5], plain);
}

/// Sequences whose queries GPUs, and tensors of f64, process in one range after another. The ranges of 512 queries end where a
/// key less would be missed. In the first range, the last query of the branch of 600 sees the key 1056, which begins a block of
/// 16. In the second, the first query of the stem sees the key 495 through the window, which ends one.
#[test]
fn attention_of_long_sequences() {
    let plain = AttentionScoring { scale: 1.0 / (8f32).sqrt(), softcap: None, window: None };
    let scorings = [
        AttentionScoring { window: Some(18), ..plain },
        AttentionScoring { softcap: Some(3.0), ..plain },
        AttentionScoring { softcap: Some(20.0), window: Some(530), ..plain },
        plain,
    ];
    for scoring in cases(scorings, 2) {
        same_attention(&[(37, &[]), (545, &[40, 600]), (1030, &[])], [4, 2, 8], scoring);
    }
}

/// Compares attention over a layout with plain attention, for heads with `d` elements. Rows are strided by 64 elements, like the
/// results of matmuls on CUDA; `wgpu` makes no copy of such rows.
fn same_attention(layout: &[(usize, &[usize])], [heads, kv_heads, d]: [usize; 3], scoring: AttentionScoring) {
    let (dev, mut packed) = (device(), Packed::default());
    for (stem, branches) in layout {
        packed.push(*stem, branches);
    }
    let (n, packed) = (packed.rows(), std::sync::Arc::new(packed));
    let heads_of = |x: Tensor<2>| -> Tensor<3> {
        let heads = (x.dims()[1] - 64) / d;
        x.narrow(1, 0, heads * d).reshape([n, heads, d])
    };
    let x = [heads, kv_heads, kv_heads].map(|heads| rnd([n, heads * d + 64], &dev));
    same(
        &format!("attention {layout:?} {heads}/{kv_heads} {d} {scoring:?}"),
        x,
        |x| {
            let [q, k, v] = x.map(heads_of);
            ops::attention(q, k, v, packed.clone(), scoring).flatten(1, 2)
        },
        |x| plain_attention(x.map(heads_of), &packed, scoring).flatten(1, 2),
    );
}

#[test]
fn rope() {
    let dev = device();
    for (n, h, d, half) in [(9, 3, 20, 10), (7, 2, 12, 3)] {
        let (cos, sin) = (rnd([n, half], &dev), rnd([n, half], &dev));
        same(
            "rope",
            [rnd([n, h * d], &dev)],
            |[x]| {
                let t = |c: &Tensor<2>| moved(c, &x.device()).cast(x.dtype());
                ops::rope(x.clone().reshape([n, h, d]), t(&cos), t(&sin)).flatten(1, 2)
            },
            |[x]| {
                let (dtype, x) = (x.dtype(), x.reshape([n, h, d]));
                let t = |c: &Tensor<2>| Tensor::cat(vec![c.clone(), c.clone()], 1).reshape([n, 1, 2 * half]).cast(dtype);
                let (x1, x2) = (x.clone().narrow(2, 0, half), x.clone().narrow(2, half, half));
                let turned = x.clone().narrow(2, 0, 2 * half) * t(&cos) + Tensor::cat(vec![x2.neg(), x1], 2) * t(&sin);
                let rest = d - 2 * half;
                let y = if rest == 0 { turned } else { Tensor::cat(vec![turned, x.narrow(2, 2 * half, rest)], 2) };
                y.flatten(1, 2)
            },
        );
    }
}

/// In a pass without gradients, one kernel on a GPU does the work of several operations: a sum and its norm; biases, norms over
/// heads and rotations of queries, keys and values.
#[test]
fn several_operations_in_one_kernel() {
    let dev = named();
    if !fused::available(&rnd::<2>([1, 1], &dev)) {
        return;
    }
    for (n, h) in [(1, 1), (3, 83), (37, 257), (5, 1024)] {
        let (x, y) = (rnd([n, h], &dev), rnd([n, h], &dev));
        let [weight, bias] = [(); 2].map(|()| rnd::<2>([1, h], &dev).reshape([h]));
        for (offset, bias) in [(0.0, None), (1.0, None), (0.0, Some(bias))] {
            let plain = |x: Tensor<2>| match &bias {
                Some(bias) => ops::layer_norm(x, weight.clone(), bias.clone(), 1e-5),
                None => ops::rms_norm(x, weight.clone(), 1e-5, offset),
            };
            let norm = fused::FusedNorm { weight: weight.clone(), bias: bias.clone(), eps: 1e-5, offset };
            for y in [None, Some(&y)] {
                let (sum, normed) = fused::norm_of_sum(&x, y, &norm, FloatDType::F32).unwrap();
                let expected = y.map_or(x.clone(), |y| x.clone() + y.clone());
                close("sum", sum, expected.clone());
                close("norm of a sum", normed, plain(expected));
            }
        }
    }
    for (n, sizes, half, with_bias, with_norm) in [
        (1, [1, 1, 2], 1, false, false),
        (7, [6, 2, 20], 10, true, false),
        (5, [3, 3, 33], 8, true, true),
        (4, [4, 2, 80], 0, true, true),
    ] {
        let [heads, kv_heads, d] = sizes;
        let counts = [heads, kv_heads, kv_heads];
        let products = counts.map(|count| rnd::<2>([n, count * d], &dev));
        let biases = counts.map(|count| with_bias.then(|| rnd::<2>([1, count * d], &dev).reshape([count * d])));
        let weights = [(); 2].map(|()| with_norm.then(|| rnd::<2>([1, d], &dev).reshape([d])));
        let rotation = (half > 0).then(|| (rnd([n, half], &dev), rnd([n, half], &dev)));
        let norms =
            weights.clone().map(|weight| weight.map(|weight| fused::FusedNorm { weight, bias: None, eps: 1e-6, offset: 0.5 }));
        let got = fused::heads(products.clone(), sizes, biases.clone(), norms, rotation.as_ref());
        for (part, (got, product)) in got.into_iter().zip(products).enumerate() {
            let product = match &biases[part] {
                Some(bias) => product + bias.clone().unsqueeze(),
                None => product,
            };
            let mut expected: Tensor<3> = product.reshape([n, counts[part], d]);
            if let Some(weight) = weights.get(part).cloned().flatten() {
                expected = ops::rms_norm(expected, weight, 1e-6, 0.5);
            }
            if let Some((cos, sin)) = rotation.as_ref().filter(|_| part < 2) {
                expected = ops::rope(expected, cos.clone(), sin.clone());
            }
            close(&format!("part {part} of {sizes:?}"), got.flatten(1, 2), expected.flatten(1, 2));
        }
    }
}

/// A decode step over sequences in scattered blocks equals plain attention over each sequence by itself, in both implementations.
/// The result depends neither on the other rows nor on the places of the blocks.
#[test]
fn decode_attention() {
    let dev = named();
    let (blocks, hq, hkv, d) = (9, 6, 2, 20);
    let (tables, lens): ([&[usize]; 3], [usize; 3]) = ([&[7, 2, 5], &[0], &[8, 1]], [37, 5, 32]);
    let (q, k, v) = (rnd([3, hq, d], &dev), rnd([blocks * BLOCK, hkv * d], &dev), rnd([blocks * BLOCK, hkv * d], &dev));
    let scale = 1.0 / (d as f32).sqrt();
    for (softcap, window) in [(None, None), (Some(0.7), None), (None, Some(6)), (Some(0.7), Some(19))] {
        let scoring = AttentionScoring { scale, softcap, window };
        let run = |rows: &[usize], k: &Tensor<2>, v: &Tensor<2>, tables: &[&[usize]]| {
            let lens: Vec<usize> = rows.iter().map(|r| lens[*r]).collect();
            let q = Tensor::cat(rows.iter().map(|r| q.clone().narrow(0, *r, 1)).collect(), 0).cast(k.dtype());
            // The new keys and values, whose places in the cache hold nothing yet.
            let last = tables.iter().zip(&lens).map(|(table, len)| table[(len - 1) / BLOCK] * BLOCK + (len - 1) % BLOCK);
            let last: Vec<usize> = last.collect();
            let new = [k, v].map(|x| Tensor::cat(last.iter().map(|place| x.clone().narrow(0, *place, 1)).collect(), 0));
            let mut cache = [k, v].map(|x| last.iter().fold(x.clone(), |x, place| x.slice_fill(*place..place + 1, 99.0)));
            let [k_cache, v_cache] = &mut cache;
            let at = CacheView::new(tables, &lens);
            let out = ops::decode_attention(q, new, [k_cache, v_cache], &at, &SentTables::default(), scoring, None);
            for (written, whole) in cache.into_iter().zip([k, v]) {
                assert_eq!(written.into_data(), whole.clone().into_data(), "the cache has the new rows");
            }
            out
        };
        let got = run(&[0, 1, 2], &k, &v, &tables);
        let double = |x: &Tensor<2>| x.clone().cast(FloatDType::F64);
        if on_cpu() {
            let composed = run(&[0, 1, 2], &double(&k), &double(&v), &tables);
            close("composed", got.clone().flatten(0, 1), composed.cast(FloatDType::F32).flatten(0, 1));
        }
        for row in 0..3 {
            let own = |x: &Tensor<2>| {
                let parts = tables[row].iter().map(|b| x.clone().narrow(0, b * BLOCK, BLOCK)).collect();
                Tensor::cat(parts, 0)
            };
            let alone = got.clone().narrow(0, row, 1).flatten::<2>(0, 1);
            let len = lens[row];
            let first = len - window.unwrap_or(len).min(len);
            let cut = |x: &Tensor<2>| own(x).narrow(0, first, len - first).reshape([len - first, hkv, d]).swap_dims(0, 1);
            let scores = q.clone().narrow(0, row, 1).reshape([hkv, hq / hkv, d]).matmul(cut(&k).swap_dims(1, 2)) * scale;
            let scores = softcap.map_or(scores.clone(), |cap| (scores / cap).tanh() * cap);
            close("row", alone.clone(), activation::softmax(scores, 2).matmul(cut(&v)).reshape([hq, d]));
            // The same keys and values in other blocks, without neighbours.
            let order: Vec<usize> = (0..tables[row].len()).collect();
            let moved = run(&[row], &own(&k), &own(&v), &[order.as_slice()]).flatten::<2>(0, 1);
            assert_eq!(moved.into_data(), alone.into_data(), "row {row}");
        }
    }
}

/// Both bodies of the head, with a reference of another width and without one. On flex, f64 tensors take the composed body,
/// which CUDA runs.
#[test]
fn head() {
    let (dev, plain) = (device(), Device::flex());
    let (n, h, h_ref, v) = (1037, 24, 17, 2301); // more than one chunk, and more than one tile of the vocabulary
    let [hidden, w] = [[n, h], [v, h]].map(|shape| (rnd(shape, &dev) * 0.3).require_grad());
    let [hidden_ref, w_ref] = [[n, h_ref], [v, h_ref]].map(|shape| rnd(shape, &plain) * 0.3);
    let targets: Vec<u32> = (0..n as u32).map(|i| i * 7919 % v as u32).collect();
    let wave = |k: f32| (0..n).map(|i| (i as f32 * k).sin()).collect::<Vec<f32>>();
    let column = |x: &[f32], dev: &Device| Tensor::<2>::from_data(TensorData::new(x.to_vec(), [n, 1]), dev);
    let index: Vec<i64> = targets.iter().map(|&x| x as i64).collect();
    let index = Tensor::<2, Int>::from_data(TensorData::new(index, [n, 1]), &dev);

    for with_reference in [false, true] {
        let lp = activation::log_softmax(hidden.clone().matmul(w.clone().transpose()), 1);
        let lq = Tensor::from_inner(activation::log_softmax(hidden_ref.clone().matmul(w_ref.clone().transpose()), 1));
        let p = lp.clone().exp();
        let log_prob = lp.clone().gather(1, index.clone());
        let entropy = (p.clone() * lp.clone()).sum_dim(1).neg();
        let full_kl = (p.clone() * (lp - lq)).sum_dim(1);
        let squared = (p.clone() * p).sum_dim(1).inner();

        let full = if with_reference { wave(0.5) } else { vec![] };
        let g = TokenGrads { log_prob: wave(0.7), entropy: wave(0.3), full_kl: full };
        let mut value = log_prob.clone() * column(&g.log_prob, &dev) + entropy.clone() * column(&g.entropy, &dev);
        if with_reference {
            value = value + full_kl.clone() * column(&g.full_kl, &dev);
        }
        let grads = value.sum().backward();
        for dtype in [FloatDType::F32, FloatDType::F64] {
            let [hid, wt] = [&hidden, &w].map(|x| x.clone().inner().cast(dtype));
            let [hid_ref, wt_ref] = [&hidden_ref, &w_ref].map(|x| x.clone().cast(dtype));
            let policy = Head { hidden: &hid, w: &wt, softcap: None };
            let reference = with_reference
                .then_some(Compared::Head(Head { hidden: &hid_ref, w: &wt_ref, softcap: None }, Divergence::ReverseKl));
            let stats = head_stats(policy, &targets, reference);
            let mut dw = Tensor::<2>::zeros([v, h], &plain).cast(dtype);
            let dh = head_backward(policy, &targets, &stats, &g, reference, Some(&mut dw));
            let stats = stats.tokens;
            let close = |name: &str, a: Tensor<2>, b: Tensor<2>| close(&format!("{dtype:?} {with_reference} {name}"), a, b);
            close("log-prob", column(&stats.log_prob, &plain), log_prob.clone().inner());
            close("entropy", column(&stats.entropy, &plain), entropy.clone().inner());
            close("Σπ²", column(&stats.sum_pi_squared, &plain), squared.clone());
            match with_reference {
                true => close("divergence", column(&stats.full_kl, &plain), full_kl.clone().inner()),
                false => assert!(stats.full_kl.is_empty()),
            }
            close("d hidden", dh.cast(FloatDType::F32), hidden.grad(&grads).unwrap());
            close("d w", dw.cast(FloatDType::F32), w.grad(&grads).unwrap());
        }
    }
}

/// A loss that reads each token by itself gets the statistics and gradients of two passes, for any kept part and in both bodies.
#[test]
fn head_at_once_is_the_head_in_two_passes() {
    let plain = Device::flex();
    let softcap = Softcap { cap: 2.0, temperature: 0.7 };
    for (n, h, v, softcap) in [(300, 5, 60_001, None), (7, 3, 50, Some(softcap))] {
        let [hidden, w] = [[n, h], [v, h]].map(|shape| rnd(shape, &plain));
        let targets: Vec<u32> = (0..n as u32).map(|i| i * 7919 % v as u32).collect();
        let loss = |tokens: Range<usize>, stats: &TokenStats| TokenGrads {
            log_prob: tokens.zip(&stats.log_prob).map(|(i, log_prob)| (i as f32).sin() * log_prob.exp()).collect(),
            entropy: stats.entropy.iter().map(|entropy| 0.1 * entropy).collect(),
            full_kl: vec![],
        };
        for dtype in [FloatDType::F32, FloatDType::F64] {
            let [hidden, w] = [&hidden, &w].map(|x| x.clone().cast(dtype));
            let head = Head { hidden: &hidden, w: &w, softcap };
            let start = || Tensor::<2>::ones([v, h], &plain).cast(dtype);
            let stats = head_stats(head, &targets, None);
            let (mut two, mut one, mut seen) = (start(), start(), Vec::new());
            let d_two = head_backward(head, &targets, &stats, &loss(0..n, &stats.tokens), None, Some(&mut two));
            let d_one = head_fused_backward(head, &targets, Some(&mut one), |tokens, stats| {
                assert_eq!(tokens.len(), stats.log_prob.len());
                seen.extend_from_slice(&stats.log_prob);
                loss(tokens, stats)
            });
            assert_eq!(seen.len(), n);
            let f32 = |x: Tensor<2>| x.cast(FloatDType::F32);
            close("d hidden", f32(d_one), f32(d_two));
            close("d w", f32(one), f32(two));
            for (one, two) in seen.iter().zip(&stats.tokens.log_prob) {
                assert!((one - two).abs() <= 1e-5 * two.abs(), "{one}, not {two}");
            }
        }
    }
}

/// Rows of logits against PyTorch in f64 (scripts/goldens/golden_full_kl.py): hidden states that are the logits, and a head of
/// 1s.
#[test]
fn golden_full_kl() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../golden/full-kl.json")).unwrap();
    let floats = |x: &serde_json::Value| x.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<f64>>();
    let rows = |key: &str| golden[key].as_array().unwrap().iter().map(floats).collect::<Vec<_>>();
    let (n, v) = (rows("logits").len(), rows("logits")[0].len());
    let temperature = golden["temperature"].as_f64().unwrap() as f32;
    let g: Vec<f32> = floats(&golden["coefficients"]).iter().map(|&x| x as f32).collect();
    let g = TokenGrads { log_prob: vec![0.0; n], entropy: vec![0.0; n], full_kl: g };
    for dtype in [FloatDType::F32, FloatDType::F64] {
        let logits = |key: &str| {
            let values: Vec<f32> = rows(key).concat().iter().map(|&x| x as f32).collect();
            Tensor::<2>::from_data(TensorData::new(values, [n, v]), &Device::flex()).cast(dtype) / temperature
        };
        let (x, y, eye) = (logits("logits"), logits("logits_ref"), Tensor::<2>::eye(v, &Device::flex()).cast(dtype));
        let (policy, reference) = (Head { hidden: &x, w: &eye, softcap: None }, Head { hidden: &y, w: &eye, softcap: None });
        let reference = Some(Compared::Head(reference, Divergence::ReverseKl));
        let stats = head_stats(policy, &vec![0; n], reference).tokens;
        let near = |label: &str, got: &[f32], expected: &[f64], min: f64| {
            for (i, (&got, expected)) in got.iter().zip(expected).enumerate() {
                let error = (f64::from(got) - expected).abs();
                assert!(error <= 1e-5 * expected.abs().max(min), "{dtype:?} {label} {i}: {got}, torch has {expected}");
            }
        };
        // A row almost equal to the reference's has a divergence of 2e-5, which must not be lost to rounding; an equal row has 0.
        near("divergence", &stats.full_kl, &floats(&golden["full_kl"]), 1e-2);
        assert_eq!(stats.full_kl[2], 0.0);
        near("Σπ²", &stats.sum_pi_squared, &floats(&golden["sum_pi_squared"]), 1e-2);
        let mut dw = Tensor::<2>::zeros([v, v], &Device::flex()).cast(dtype);
        let d = head_backward(policy, &vec![0; n], &head_stats(policy, &vec![0; n], reference), &g, reference, Some(&mut dw));
        let d: Vec<f32> = (d / temperature).cast(FloatDType::F32).into_data().try_into_vec().unwrap();
        for (row, expected) in rows("d_logits").iter().enumerate() {
            // A gradient is p times (log-ratio − divergence), and both terms are of about this size.
            let min = floats(&golden["full_kl"])[row].max(0.1);
            near(&format!("d logits of row {row}"), &d[row * v..(row + 1) * v], expected, min);
        }
    }
}
