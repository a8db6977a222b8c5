//! Fused operations compared with the same maths composed of burn's own operations: `cargo bench --bench ops`.
//! `scripts/bench/bench_ops_torch.py` prints PyTorch's times. The output is a table of minimum times, not criterion's, so that
//! all three can be compared directly.

#![expect(clippy::print_stdout, reason = "what is measured is printed")]

use burn::prelude::*;
use burnish::model::decoder::Decoder;
use burnish::model::ops::{self, Act, AttentionScoring, Head, Packed, head_backward, head_stats};
use burnish::model::token_stats::TokenGrads;
use burnish::model::{CausalLm, Gradients, Init};
use burnish::optim::{AdamWConfig, Optimizer};

use plain::{ACTS, device, plain_act, plain_attention, rnd};

#[path = "../tests/model/plain.rs"]
mod plain;

/// The same allocator as in the program. The system's allocator returns the pages of each result to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    println!("ms forward, with backward: composed | fused");
    elementwise();
    attention();
    head();
    adamw();
}

/// The minimum of several times in milliseconds, which other work on the machine disturbs least.
fn min(repeats: usize, mut f: impl FnMut()) -> f64 {
    let time = |_| {
        let start = std::time::Instant::now();
        f();
        start.elapsed().as_secs_f64() * 1e3
    };
    (0..repeats).map(time).fold(f64::INFINITY, f64::min)
}

type F<'a, const N: usize> = &'a dyn Fn([Tensor<2>; N]) -> Tensor<2>;

fn row<const N: usize>(name: &str, shapes: [[usize; 2]; N], plain: F<N>, fused: F<N>) {
    let x = shapes.map(|shape| rnd(shape, &device()).require_grad());
    let pass = |f: F<N>| min(15, || drop(f(x.clone()).backward()));
    let forward = |f: F<N>| min(15, || drop(f(x.clone().map(|x| x.inner()))));
    println!("{name} | {:.2} {:.2} | {:.2} {:.2}", forward(plain), pass(plain), forward(fused), pass(fused));
}

/// A forward pass, and one with its backward pass, of the plain composition and of the operation.
fn elementwise() {
    let (n, h, m) = (2048, 640, 1728);
    row("glu silu", [[n, m]; 2], &|[g, u]| plain_act(g, Act::Silu) * u, &|[g, u]| ops::glu(g, u, Act::Silu));
    for act in ACTS {
        row(&format!("act {act:?}"), [[n, m]], &|[x]| plain_act(x, act), &|[x]| ops::act(x, act));
    }
    row("rms_norm", [[n, h], [1, h]], &|[x, w]| x.clone() / (x.powf_scalar(2.0).mean_dim(1) + 1e-5).sqrt() * w, &|[x, w]| {
        ops::rms_norm(x, w.reshape([h]), 1e-5, 0.0)
    });
    row(
        "layer_norm",
        [[n, h], [1, h], [1, h]],
        &|[x, w, b]| {
            let x = x.clone() - x.mean_dim(1);
            x.clone() / (x.powf_scalar(2.0).mean_dim(1) + 1e-5).sqrt() * w + b
        },
        &|[x, w, b]| ops::layer_norm(x, w.reshape([h]), b.reshape([h]), 1e-5),
    );
    let angles = rnd([n, 32], &Device::flex());
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    row(
        "rope",
        [[n, h]],
        &|[x]| {
            let (x, t) = (x.reshape([n, 10, 64]), |c: &Tensor<2>| Tensor::cat(vec![c.clone(); 2], 1).reshape([n, 1, 64]));
            let (x1, x2) = (x.clone().narrow(2, 0, 32), x.clone().narrow(2, 32, 32));
            (x * t(&cos) + Tensor::cat(vec![x2.neg(), x1], 2) * t(&sin)).flatten(1, 2)
        },
        &|[x]| ops::rope(x.reshape([n, 10, 64]), cos.clone(), sin.clone()).flatten(1, 2),
    );
    row("linear", [[n, h], [m, h], [1, m]], &|[x, w, b]| x.matmul(w.transpose()) + b, &|[x, w, b]| {
        ops::linear(x, w, Some(b.reshape([m])))
    });
}

fn attention() {
    let scoring = AttentionScoring { scale: 0.125, softcap: None, window: None };
    for (name, count, stem, branches) in
        [("attention 8x256", 8, 256, &[][..]), ("attention 32x64", 32, 64, &[]), ("attention 2x(128+8x64)", 2, 128, &[64; 8])]
    {
        let mut packed = Packed::default();
        (0..count).for_each(|_| _ = packed.push(stem, branches));
        let (n, packed) = (packed.rows(), std::sync::Arc::new(packed));
        let heads = |x: Tensor<2>| -> Tensor<3> {
            let heads = x.dims()[1] / 64;
            x.reshape([n, heads, 64])
        };
        row(name, [[n, 640], [n, 128], [n, 128]], &|x| plain_attention(x.map(heads), &packed, scoring).flatten(1, 2), &|x| {
            let [q, k, v] = x.map(heads);
            ops::attention(q, k, v, packed.clone(), scoring).flatten(1, 2)
        });
    }
}

/// The passes of the head, and the throughput of their matmul.
fn head() {
    let n = 2048;
    for h in [256, 640] {
        let (dev, v) = (Device::flex(), 50_304);
        let (hidden, w, mut dw) = (rnd([n, h], &dev) * 0.1, rnd([v, h], &dev) * 0.1, Tensor::zeros([v, h], &dev));
        let (head, targets) = (Head { hidden: &hidden, w: &w, softcap: None }, vec![7; n]);
        let gflop = (2 * n * v * h) as f64 / 1e9;
        let report = |what: &str, products: f64, time: f64| {
            println!("head {h} {what}: {time:.0} ms, {:.0} GFLOP/s", 1e3 * products * gflop / time);
        };
        report("product alone", 1.0, min(5, || drop(hidden.clone().matmul(w.clone().transpose()))));
        report("forward", 1.0, min(5, || drop(head_stats(head, &targets, None))));
        let stats = head_stats(head, &targets, None);
        for entropy in [0.0, 0.1] {
            let g = TokenGrads { log_prob: vec![0.3; n], entropy: vec![entropy; n], full_kl: vec![] };
            let time = min(5, || drop(head_backward(head, &targets, &stats, &g, None, Some(&mut dw))));
            report(&format!("backward, gradient of entropy {entropy}"), 3.0, time);
        }
    }
}

/// The norm of a gradient and an AdamW update.
fn adamw() {
    let folder = tempfile::tempdir().unwrap();
    let source = include_str!("../recipes/gsm8k/qwen2_small/config.json");
    let large = source
        .replace("\"hidden_size\": 256", "\"hidden_size\": 640")
        .replace("704", "1728")
        .replace("_layers\": 6", "_layers\": 10");
    for config in [source, &large] {
        std::fs::write(folder.path().join("config.json"), config).unwrap();
        let mut model = CausalLm::load(folder.path(), Init::Random { seed: 0 }, &Device::flex()).unwrap().trainable();
        let shapes = burnish::model::weights::trained_shapes(&model.net);
        let gradients = || {
            let mut gradients = Gradients::default();
            shapes.iter().for_each(|(name, shape)| {
                gradients.add(name, Tensor::<1>::ones([shape.iter().product::<usize>()], &Device::flex()))
            });
            gradients
        };
        let mut optimizer = Optimizer::adamw(AdamWConfig { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 });
        let (mut norm, mut update, mut sum) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        for _ in 0..6 {
            let (mut g, more) = (gradients(), gradients());
            sum = sum.min(min(1, || shapes.keys().for_each(|name| g.add(name, more.0[name].clone()))));
            norm = norm.min(min(1, || _ = g.norm()));
            let net = std::mem::replace(&mut model.net, Decoder::empty(&Device::flex()));
            let start = std::time::Instant::now();
            model.net = optimizer.update(net, g, 1e-4, 1.0);
            update = update.min(start.elapsed().as_secs_f64() * 1e3);
        }
        let millions = shapes.values().map(|shape| shape.iter().product::<usize>()).sum::<usize>() / 1_000_000;
        println!("adamw {millions} M: update {update:.1} ms, norm {norm:.1} ms, sum of gradients {sum:.1} ms");
    }
}
