//! Fused operations against the same maths composed of burn's own ops: values and gradients; and what batching may not change.

use burn::prelude::*;
use burn::tensor::{Distribution, FloatDType, activation};
use burnish::model::ops::{self, CacheView, Head, head_backward, head_stats};
use burnish::model::token_stats::TokenGrads;

fn device() -> Device {
    Device::flex().autodiff()
}

fn close(name: &str, a: Tensor<2>, b: Tensor<2>) {
    let scale: f32 = b.clone().abs().max().into_scalar();
    let err: f32 = (a - b).abs().max().into_scalar();
    assert!(err <= 1e-5 * scale, "{name}: largest error {err}, largest value {scale}");
}

fn rnd<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 2.0), device)
}

#[test]
fn swiglu() {
    let d = device();
    let (g, u, c) = (rnd([67, 129], &d).require_grad(), rnd([67, 129], &d).require_grad(), rnd([67, 129], &d));
    let run = |y: Tensor<2>| {
        let mut grads = (y.clone() * c.clone()).sum().backward();
        (y.inner(), g.grad_remove(&mut grads).unwrap(), u.grad_remove(&mut grads).unwrap())
    };
    let a = run(ops::swiglu(g.clone(), u.clone()));
    let b = run(activation::silu(g.clone()) * u.clone());
    close("y", a.0, b.0);
    close("d gate", a.1, b.1);
    close("d up", a.2, b.2);
    // Strided inputs, one of them untracked.
    let y = ops::swiglu(g.clone().transpose(), c.clone().transpose());
    let z = activation::silu(g.clone().transpose()) * c.clone().transpose();
    close("strided", y.clone().inner(), z.clone().inner());
    close("strided d gate", g.grad(&y.sum().backward()).unwrap(), g.grad(&z.sum().backward()).unwrap());
    let e = Tensor::<2>::from_floats([[-200.0, -90.0, 0.0, 90.0, 200.0]], &d);
    let y: Vec<f32> = ops::swiglu(e.clone(), e.ones_like()).into_data().try_to_vec().unwrap();
    assert!(y.iter().all(|x| x.is_finite()) && y[4] == 200.0 && y[0].abs() < 1e-30, "extremes: {y:?}");
}

#[test]
fn rms_norm() {
    let d = device();
    let (x, w, c) = (rnd([5, 37, 83], &d).require_grad(), rnd([83], &d).require_grad(), rnd([5, 37, 83], &d));
    let run = |y: Tensor<3>| {
        let mut grads = (y.clone() * c.clone()).sum().backward();
        let (dx, dw) = (x.grad_remove(&mut grads).unwrap(), w.grad_remove(&mut grads).unwrap());
        (y.inner().flatten(0, 1), dx.flatten(0, 1), dw.unsqueeze())
    };
    let a = run(ops::rms_norm(x.clone(), w.clone(), 1e-5));
    let r = (x.clone().powf_scalar(2.0).mean_dim(2) + 1e-5).sqrt();
    let b = run(x.clone() / r * w.clone().unsqueeze());
    close("y", a.0, b.0);
    close("dx", a.1, b.1);
    close("dw", a.2, b.2);
}

#[test]
fn linear() {
    let d = device();
    let (x, w, b) = (rnd([17, 12], &d).require_grad(), rnd([9, 12], &d).require_grad(), rnd([9], &d).require_grad());
    let c = rnd([17, 9], &d);
    let run = |y: Tensor<2>| {
        let mut grads = (y.clone() * c.clone()).sum().backward();
        let (dx, dw) = (x.grad_remove(&mut grads).unwrap(), w.grad_remove(&mut grads).unwrap());
        [y.inner(), dx, dw, b.grad_remove(&mut grads).unwrap().unsqueeze()]
    };
    let fused = run(ops::linear(x.clone(), w.clone(), Some(b.clone())));
    let plain = run(x.clone().matmul(w.clone().transpose()) + b.clone().unsqueeze());
    for (name, (a, b)) in ["y", "dx", "dw", "db"].iter().zip(fused.into_iter().zip(plain)) {
        close(name, a, b);
    }
}

#[test]
fn attention() {
    let dev = device();
    for (b, s, t, hq, hkv, d) in [(2, 130, 130, 4, 2, 16), (1, 5, 70, 6, 3, 24), (3, 1, 17, 4, 1, 8)] {
        let (q, k, v) = (
            rnd([b, s, hq, d], &dev).require_grad(),
            rnd([b, t, hkv, d], &dev).require_grad(),
            rnd([b, t, hkv, d], &dev).require_grad(),
        );
        let c = rnd([b, s, hq, d], &dev);
        let run = |y: Tensor<4>| {
            let mut grads = (y.clone() * c.clone()).sum().backward();
            let mut grad = |x: &Tensor<4>| x.grad_remove(&mut grads).unwrap().flatten(0, 2);
            [y.inner().flatten(0, 2), grad(&q), grad(&k), grad(&v)]
        };
        let fused = run(ops::attention(q.clone(), k.clone(), v.clone()));
        let repeat =
            |x: Tensor<4>| x.swap_dims(1, 2).reshape([b, hkv, 1, t, d]).expand([b, hkv, hq / hkv, t, d]).reshape([b, hq, t, d]);
        let mask: Vec<f32> = (0..s * t).map(|i| if i % t > t - s + i / t { -1e30 } else { 0.0 }).collect();
        let mask = Tensor::<4>::from_data(TensorData::new(mask, [1, 1, s, t]), &dev);
        let scores = q.clone().swap_dims(1, 2).matmul(repeat(k.clone()).swap_dims(2, 3)) / (d as f32).sqrt() + mask;
        let plain = run(activation::softmax(scores, 3).matmul(repeat(v.clone())).swap_dims(1, 2));
        for ((name, a), b) in ["out", "dq", "dk", "dv"].iter().zip(fused).zip(plain) {
            close(name, a, b);
        }
    }
}

#[test]
fn rope() {
    let dev = device();
    let (b, s, h, d) = (2, 9, 3, 20);
    let (x, c) = (rnd([b, s, h, d], &dev).require_grad(), rnd([b, s, h, d], &dev));
    let (cos, sin) = (rnd([s, d / 2], &dev), rnd([s, d / 2], &dev));
    let run = |y: Tensor<4>| {
        let g = x.grad(&(y.clone() * c.clone()).sum().backward()).unwrap();
        (y.inner().flatten(0, 2), g.flatten(0, 2))
    };
    let a = run(ops::rope(x.clone(), cos.clone(), sin.clone()));
    let t = |c: Tensor<2>| Tensor::cat(vec![c.clone(), c], 1).reshape([1, s, 1, d]);
    let (x1, x2) = (x.clone().narrow(3, 0, d / 2), x.clone().narrow(3, d / 2, d / 2));
    let e = run(x.clone() * t(cos) + Tensor::cat(vec![x2.neg(), x1], 3) * t(sin));
    close("y", a.0, e.0);
    close("dx", a.1, e.1);
}

/// A decode step over slots of different lengths equals causal attention over each slot alone.
#[test]
fn decode_attention() {
    let dev = Device::flex();
    let (slots, lens, capacity, hq, hkv, d) = ([2, 0], [17, 5], 20, 4, 2, 8);
    let (q, k, v) = (rnd([2, hq, d], &dev), rnd([3 * capacity, hkv * d], &dev), rnd([3 * capacity, hkv * d], &dev));
    let at = CacheView { capacity, kv_heads: hkv, slots: &slots, lens: &lens };
    let got = ops::decode_attention(q.clone(), &k, &v, at);
    let plain = ops::decode_attention(
        q.clone().cast(FloatDType::F64),
        &k.clone().cast(FloatDType::F64),
        &v.clone().cast(FloatDType::F64),
        at,
    );
    close("composed", got.clone().flatten(0, 1), plain.cast(FloatDType::F32).flatten(0, 1));
    for row in 0..2 {
        let (slot, len) = (slots[row], lens[row]);
        let cut = |x: &Tensor<2>| x.clone().narrow(0, slot * capacity, len).reshape([1, len, hkv, d]);
        let alone = ops::attention(q.clone().narrow(0, row, 1).reshape([1, 1, hq, d]), cut(&k), cut(&v));
        close("row", got.clone().narrow(0, row, 1).flatten(0, 1), alone.flatten(0, 2));
    }
}

/// Both bodies of the head, with a reference of another width and without one. On flex, f64 tensors take the composed body,
/// which CUDA runs.
#[test]
fn head() {
    let (dev, plain) = (device(), Device::flex());
    let (n, h, h_ref, v) = (1037, 24, 17, 301); // more than one chunk
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
            let policy = Head { hidden: &hid, w: &wt };
            let reference = with_reference.then_some(Head { hidden: &hid_ref, w: &wt_ref });
            let stats = head_stats(policy, &targets, reference);
            let mut dw = Tensor::<2>::zeros([v, h], &plain).cast(dtype);
            let dh = head_backward(policy, &targets, &g, reference, &mut dw);
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

/// Rows of logits against PyTorch in f64 (scripts/golden_full_kl.py): hidden states that are the logits, and a head of 1s.
#[test]
fn golden_full_kl() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("golden/full-kl.json")).unwrap();
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
        let (policy, reference) = (Head { hidden: &x, w: &eye }, Some(Head { hidden: &y, w: &eye }));
        let stats = head_stats(policy, &vec![0; n], reference);
        let near = |what: &str, got: &[f32], want: &[f64], least: f64| {
            for (i, (&got, want)) in got.iter().zip(want).enumerate() {
                let error = (f64::from(got) - want).abs();
                assert!(error <= 1e-5 * want.abs().max(least), "{dtype:?} {what} {i}: {got}, torch has {want}");
            }
        };
        // A row all but equal to the reference's has a divergence of 2e-5, which must not drown in rounding; an equal one has 0.
        near("divergence", &stats.full_kl, &floats(&golden["full_kl"]), 1e-2);
        assert_eq!(stats.full_kl[2], 0.0);
        near("Σπ²", &stats.sum_pi_squared, &floats(&golden["sum_pi_squared"]), 1e-2);
        let d = head_backward(policy, &vec![0; n], &g, reference, &mut Tensor::<2>::zeros([v, v], &Device::flex()).cast(dtype));
        let d: Vec<f32> = (d / temperature).cast(FloatDType::F32).into_data().try_into_vec().unwrap();
        for (row, want) in rows("d_logits").iter().enumerate() {
            // A gradient is p times log-ratio less divergence, two numbers of this size.
            let least = floats(&golden["full_kl"])[row].max(0.1);
            near(&format!("d logits of row {row}"), &d[row * v..(row + 1) * v], want, least);
        }
    }
}

/// The composed bodies, which CUDA runs, against the fused ones: on flex, f64 tensors take the composed path.
#[test]
fn composed() {
    use FloatDType::{F32, F64};
    let dev = device();
    fn check<const N: usize>(name: &str, x: [Tensor<2>; N], f: impl Fn([Tensor<2>; N]) -> Tensor<2>) {
        let run = |double: bool| {
            let y = f(x.clone().map(|x| if double { x.cast(F64) } else { x }));
            let g = (y.clone() * y.clone()).sum().backward();
            std::iter::once(y.inner().cast(F32)).chain(x.iter().map(|x| x.grad(&g).unwrap().cast(F32))).collect::<Vec<_>>()
        };
        for (i, (a, b)) in run(false).into_iter().zip(run(true)).enumerate() {
            close(&format!("{name} {i}"), a, b);
        }
    }
    let r = |s: [usize; 2]| rnd(s, &dev).require_grad();
    check("swiglu", [r([6, 20]), r([6, 20])], |[g, u]| ops::swiglu(g, u));
    check("rms_norm", [r([6, 20]), r([1, 20])], |[x, w]| ops::rms_norm(x, w.reshape([20]), 1e-5));
    let q4 = |x: Tensor<2>, h: usize| x.reshape([2, 7, h, 8]);
    check("attention", [r([14, 32]), r([14, 16]), r([14, 16])], |[q, k, v]| {
        ops::attention(q4(q, 4), q4(k, 2), q4(v, 2)).reshape([14, 32])
    });
    let (c, n) = (rnd([7, 4], &dev), rnd([7, 4], &dev));
    check("rope", [r([14, 32])], |[x]| {
        let t = x.dtype();
        ops::rope(q4(x, 4), c.clone().cast(t), n.clone().cast(t)).reshape([14, 32])
    });
}
