//! Kernels of recurrent layers against ordinary operations, and single steps against a pass.

mod delta {
    use std::sync::Arc;

    use burn::tensor::{Device, Tensor};

    use crate::ops::delta_rule::{delta_rule, delta_rule_with_states};
    use crate::ops::delta_rule_composed::composed;
    use crate::ops::recurrent_decode::{SlotRows, delta_step};
    use crate::ops::{DeltaHeads, DeltaLayout, DeltaTensors, Packed, tensor_from_vec, to_host};

    const HEADS: DeltaHeads = DeltaHeads { key_heads: 2, value_heads: 6, key_dim: 10, value_dim: 7 };

    fn values(seed: usize, shape: [usize; 2], scale: f32, device: &Device) -> Tensor<2> {
        let value = |i: usize| ((i * 37 + seed * 101) as f32 * 0.613).sin() * scale;
        tensor_from_vec((0..shape[0] * shape[1]).map(value).collect(), shape, device)
    }

    /// Rows whose decays are strong, weak and nearly 1.
    fn inputs(rows: usize, device: &Device) -> DeltaTensors {
        let (qkv, gates) = ([rows, HEADS.width()], [rows, HEADS.value_heads]);
        let vector = |seed, scale| values(seed, [1, HEADS.value_heads], scale, device).reshape([HEADS.value_heads]);
        DeltaTensors {
            qkv: values(1, qkv, 1.0, device),
            a: values(2, gates, 6.0, device),
            b: values(3, gates, 3.0, device),
            a_log: vector(4, 2.0),
            dt_bias: vector(5, 1.0),
        }
    }

    /// Stems and branches shorter than a chunk, as long as one, and longer; a branch without rows.
    fn packed() -> Arc<Packed> {
        let mut packed = Packed::default();
        packed.push(70, &[3, 0, 130]);
        packed.push(1, &[]);
        packed.push(64, &[64, 1]);
        packed.push(150, &[]);
        packed.into()
    }

    fn gradients(run: impl Fn(DeltaTensors) -> Tensor<2>, rows: usize, device: &Device) -> Vec<Vec<f32>> {
        let DeltaTensors { qkv, a, b, a_log, dt_bias } = inputs(rows, device);
        let leaf = |x: Tensor<2>| Tensor::from_inner(x).require_grad();
        let vector = |x: Tensor<1>| Tensor::from_inner(x).require_grad();
        let x = DeltaTensors { qkv: leaf(qkv), a: leaf(a), b: leaf(b), a_log: vector(a_log), dt_bias: vector(dt_bias) };
        let weights = Tensor::from_inner(values(9, [rows, HEADS.values()], 1.0, device));
        let y = run(x.clone());
        let mut graph = (y.clone() * weights).sum().backward();
        let matrices = [&x.qkv, &x.a, &x.b].map(|x| to_host(x.grad_remove(&mut graph).unwrap()));
        let vectors = [&x.a_log, &x.dt_bias].map(|x| to_host(x.grad_remove(&mut graph).unwrap()));
        [vec![to_host(y.inner())], matrices.to_vec(), vectors.to_vec()].concat()
    }

    #[track_caller]
    fn close(label: &str, got: &[f32], expected: &[f32]) {
        assert_eq!(got.len(), expected.len(), "{label}");
        let largest = expected.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        let error = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
        let error = error.fold(0.0, |max: f32, x| if x.is_nan() { f32::INFINITY } else { max.max(x) });
        assert!(largest > 0.0 && error <= 5e-5 * largest, "{label}: {error} of {largest}");
    }

    #[test]
    fn the_kernels_equal_ordinary_operations() {
        let (packed, device) = (packed(), Device::flex());
        let layout = DeltaLayout { packed: packed.clone(), heads: HEADS };
        let kernels = gradients(|x| delta_rule(x, layout.clone()), packed.rows(), &device);
        let operations = gradients(|x| composed(x, &layout).0, packed.rows(), &device);
        for (name, (a, b)) in ["y", "qkv", "a", "b", "A_log", "dt_bias"].iter().zip(kernels.iter().zip(&operations)) {
            close(name, a, b);
        }
    }

    /// One token after another, from the states after the stems.
    #[test]
    fn single_steps_equal_a_pass() {
        let (packed, device) = (packed(), Device::flex());
        let (layout, x) = (DeltaLayout { packed: packed.clone(), heads: HEADS }, inputs(packed.rows(), &device));
        let (y, states) = delta_rule_with_states(x.clone(), &layout);
        let (composed_y, composed_states) = composed(x.clone(), &layout);
        close("outputs", &to_host(y.clone()), &to_host(composed_y));
        close("states", &to_host(states.clone()), &to_host(composed_states));
        let mut pool = states;
        // The third branch of the first tree, and the first of the third.
        for (tree, branch) in [(0, 3), (2, 1)] {
            let rows = packed.trees[tree][branch].rows.clone();
            let part = |x: &Tensor<2>| x.clone().narrow(0, rows.start, rows.len());
            let step = DeltaTensors { qkv: part(&x.qkv), a: part(&x.a), b: part(&x.b), ..x.clone() };
            let at = SlotRows::from(vec![tree; rows.len()]);
            let got = delta_step(step, HEADS, &mut pool, &at);
            close("steps", &to_host(got), &to_host(part(&y)));
        }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let (packed, device) = (packed(), Device::flex());
        let layout = DeltaLayout { packed: packed.clone(), heads: HEADS };
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradients(|x| delta_rule(x, layout.clone()), packed.rows(), &device))
        };
        assert_eq!(run(1), run(3));
    }
}

mod convolution {
    use std::sync::Arc;

    use burn::tensor::{Device, Tensor};

    use crate::ops::causal_conv::{causal_conv, composed, conv_tails};
    use crate::ops::recurrent_decode::{SlotRows, conv_step};
    use crate::ops::{Packed, tensor_from_vec, to_host};

    const CHANNELS: usize = 300;

    fn values(seed: usize, shape: [usize; 2], device: &Device) -> Tensor<2> {
        let value = |i: usize| ((i * 37 + seed * 101) as f32 * 0.613).sin();
        tensor_from_vec((0..shape[0] * shape[1]).map(value).collect(), shape, device)
    }

    fn packed() -> Arc<Packed> {
        let mut packed = Packed::default();
        packed.push(2, &[3, 0, 9]);
        packed.push(1, &[]);
        packed.push(7, &[1, 2]);
        packed.into()
    }

    #[test]
    fn the_kernel_equals_ordinary_operations() {
        let (packed, device) = (packed(), Device::flex());
        for size in [2, 3, 4] {
            let run = |conv: &dyn Fn(Tensor<2>, Tensor<2>) -> Tensor<2>| {
                let x = Tensor::from_inner(values(1, [packed.rows(), CHANNELS], &device)).require_grad();
                let w = Tensor::from_inner(values(2, [CHANNELS, size], &device)).require_grad();
                let y = conv(x.clone(), w.clone());
                let mut graph = (y.clone() * Tensor::from_inner(values(3, [packed.rows(), CHANNELS], &device))).sum().backward();
                [y.inner(), x.grad_remove(&mut graph).unwrap(), w.grad_remove(&mut graph).unwrap()].map(to_host)
            };
            let (kernel, operations) = (run(&|x, w| causal_conv(x, w, &packed)), run(&|x, w| composed(x, w, &packed)));
            for (name, (a, b)) in ["y", "dx", "dw"].iter().zip(kernel.iter().zip(&operations)) {
                let error = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(a.len() == b.len() && error < 1e-5, "{name} with {size} taps: {error}");
            }
        }
    }

    #[test]
    fn single_steps_continue_a_pass() {
        let (packed, device) = (packed(), Device::flex());
        let (x, w) = (values(1, [packed.rows(), CHANNELS], &device), values(2, [CHANNELS, 4], &device));
        let y = to_host(causal_conv(x.clone(), w.clone(), &packed));
        let mut tails = conv_tails(&x, 4, &packed);
        for (tree, branch) in [(0, 3), (2, 2)] {
            let rows = packed.trees[tree][branch].rows.clone();
            let at = SlotRows::from(vec![tree; rows.len()]);
            let got = conv_step(x.clone().narrow(0, rows.start, rows.len()), w.clone(), &mut tails, &at);
            assert_eq!(to_host(got), y[rows.start * CHANNELS..rows.end * CHANNELS]);
        }
    }
}
