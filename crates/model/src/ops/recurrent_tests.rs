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

mod scan {
    use std::sync::Arc;

    use burn::tensor::{Device, Tensor};

    use crate::ops::recurrent_decode::SlotRows;
    use crate::ops::scan::{scan, scan_with_states};
    use crate::ops::scan_composed::composed;
    use crate::ops::scan_decode::scan_step;
    use crate::ops::{Packed, ScanLayout, ScanShape, ScanTensors, tensor_from_vec, to_host};

    /// More heads in a group than one task computes, limits that some time steps reach, and the common shape.
    const SHAPES: [ScanShape; 2] = [
        ScanShape { heads: 20, head_dim: 7, groups: 2, state_dim: 10, limits: [0.02, 4.0] },
        ScanShape { heads: 3, head_dim: 5, groups: 1, state_dim: 6, limits: [0.0, f32::INFINITY] },
    ];

    fn values(seed: usize, shape: [usize; 2], scale: f32, device: &Device) -> Tensor<2> {
        let value = |i: usize| ((i * 37 + seed * 101) as f32 * 0.613).sin() * scale;
        tensor_from_vec((0..shape[0] * shape[1]).map(value).collect(), shape, device)
    }

    /// Rows whose decays are strong, weak and nearly 1.
    fn inputs(rows: usize, shape: ScanShape, device: &Device) -> ScanTensors {
        let vector = |seed, scale| values(seed, [1, shape.heads], scale, device).reshape([shape.heads]);
        ScanTensors {
            xbc: values(1, [rows, shape.width()], 1.0, device),
            dt: values(2, [rows, shape.heads], 6.0, device),
            a_log: vector(4, 2.0),
            dt_bias: vector(5, 1.0),
            skip: vector(6, 1.0),
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

    fn gradients(run: impl Fn(ScanTensors) -> Tensor<2>, rows: usize, shape: ScanShape, device: &Device) -> Vec<Vec<f32>> {
        let ScanTensors { xbc, dt, a_log, dt_bias, skip } = inputs(rows, shape, device);
        let leaf = |x: Tensor<2>| Tensor::from_inner(x).require_grad();
        let vector = |x: Tensor<1>| Tensor::from_inner(x).require_grad();
        let x = ScanTensors { xbc: leaf(xbc), dt: leaf(dt), a_log: vector(a_log), dt_bias: vector(dt_bias), skip: vector(skip) };
        let weights = Tensor::from_inner(values(9, [rows, shape.values()], 1.0, device));
        let y = run(x.clone());
        let mut graph = (y.clone() * weights).sum().backward();
        let matrices = [&x.xbc, &x.dt].map(|x| to_host(x.grad_remove(&mut graph).unwrap()));
        let vectors = [&x.a_log, &x.dt_bias, &x.skip].map(|x| to_host(x.grad_remove(&mut graph).unwrap()));
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

    /// The scan by its definition, row after row, in f64.
    fn by_definition(x: &ScanTensors, packed: &Packed, shape: ScanShape) -> Vec<f32> {
        let [xbc, dt] = [&x.xbc, &x.dt].map(|x| to_host(x.clone()));
        let [a_log, dt_bias, skip] = [&x.a_log, &x.dt_bias, &x.skip].map(|x| to_host(x.clone()));
        let (p, dim, per_group) = (shape.head_dim, shape.state_dim, shape.heads / shape.groups);
        let mut y = vec![0.0; packed.rows() * shape.values()];
        for segment in packed.segments() {
            for head in 0..shape.heads {
                let mut state = vec![0.0f64; dim * p];
                for row in segment.stem.clone().chain(segment.rows.clone()) {
                    let at = |i: usize| f64::from(xbc[row * shape.width() + i]);
                    let step = (f64::from(dt[row * shape.heads + head]) + f64::from(dt_bias[head])).exp().ln_1p();
                    let step = step.clamp(f64::from(shape.limits[0]), f64::from(shape.limits[1]));
                    let decay = (-f64::from(a_log[head]).exp() * step).exp();
                    let (b, c) =
                        (shape.values() + head / per_group * dim, shape.values() + shape.keys() + head / per_group * dim);
                    for k in 0..p {
                        let own = at(head * p + k);
                        let mut sum = f64::from(skip[head]) * own;
                        for d in 0..dim {
                            let s = &mut state[d * p + k];
                            *s = *s * decay + step * at(b + d) * own;
                            sum += *s * at(c + d);
                        }
                        y[row * shape.values() + head * p + k] = sum as f32;
                    }
                }
            }
        }
        y
    }

    #[test]
    fn the_kernels_equal_ordinary_operations_and_the_definition() {
        let (packed, device) = (packed(), Device::flex());
        for shape in SHAPES {
            let layout = ScanLayout { packed: packed.clone(), shape };
            let kernels = gradients(|x| scan(x, layout.clone()), packed.rows(), shape, &device);
            let operations = gradients(|x| composed(x, &layout).0, packed.rows(), shape, &device);
            for (name, (a, b)) in ["y", "xbc", "dt", "A_log", "dt_bias", "D"].iter().zip(kernels.iter().zip(&operations)) {
                close(name, a, b);
            }
            close("definition", &kernels[0], &by_definition(&inputs(packed.rows(), shape, &device), &packed, shape));
        }
    }

    /// One token after another, from the states after the stems.
    #[test]
    fn single_steps_equal_a_pass() {
        let (packed, device) = (packed(), Device::flex());
        for shape in SHAPES {
            let (layout, x) = (ScanLayout { packed: packed.clone(), shape }, inputs(packed.rows(), shape, &device));
            let (y, states) = scan_with_states(x.clone(), &layout);
            let (composed_y, composed_states) = composed(x.clone(), &layout);
            close("outputs", &to_host(y.clone()), &to_host(composed_y));
            close("states", &to_host(states.clone()), &to_host(composed_states));
            let mut pool = states;
            // The third branch of the first tree, and the first of the third.
            for (tree, branch) in [(0, 3), (2, 1)] {
                let rows = packed.trees[tree][branch].rows.clone();
                let part = |x: &Tensor<2>| x.clone().narrow(0, rows.start, rows.len());
                let step = ScanTensors { xbc: part(&x.xbc), dt: part(&x.dt), ..x.clone() };
                let at = SlotRows::from(vec![tree; rows.len()]);
                let got = scan_step(step, shape, &mut pool, &at);
                close("steps", &to_host(got), &to_host(part(&y)));
            }
        }
    }

    /// Over long sequences of strong decays, running sums are far below what an exponential can hold.
    #[test]
    fn strong_decays_over_long_sequences_stay_finite() {
        let (device, shape) = (Device::flex(), SHAPES[1]);
        let mut packed = Packed::default();
        packed.push(3000, &[]);
        let (packed, rows) = (Arc::new(packed), 3000);
        let layout = ScanLayout { packed: packed.clone(), shape };
        let strong = |x: ScanTensors| ScanTensors { dt: x.dt + 30.0, ..x };
        for run in [
            gradients(|x| scan(strong(x), layout.clone()), rows, shape, &device),
            gradients(|x| composed(strong(x), &layout).0, rows, shape, &device),
        ] {
            assert!(run.iter().flatten().all(|x| x.is_finite()));
        }
        let x = strong(inputs(rows, shape, &device));
        close("definition", &to_host(scan(x.clone(), layout)), &by_definition(&x, &packed, shape));
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let (packed, device) = (packed(), Device::flex());
        let layout = ScanLayout { packed: packed.clone(), shape: SHAPES[0] };
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradients(|x| scan(x, layout.clone()), packed.rows(), SHAPES[0], &device))
        };
        assert_eq!(run(1), run(3));
    }
}
