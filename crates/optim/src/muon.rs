//! Muon: the momentum of a block's matrix, made orthogonal; AdamW for all other parameters.

use anyhow::Result;
use burn::tensor::Tensor;

use super::adamw::{AdamW, AdamWConfig};
use super::kind::OptimizerKind;
use super::rule::{Parameter, Rule, Slot, Step, TrainedParam, UpdatedParam, state, tensors};
use super::settings::{OptimizerOption, OptimizerSettings};

pub(super) const MUON: OptimizerKind = OptimizerKind {
    name: "Muon",
    aliases: &[],
    doc: "The momentum of each matrix of a block, made orthogonal by Newton-Schulz; AdamW for embedding, head, norms and biases.\n\
          Formula: b ← μb + (1 − μ)g; o = newton_schulz(b, with nesterov (1 − μ)g + μb); w ← w·(1 − lr·λ) − lr·scale·o, where scale is \
          √max(1, rows/columns) (original), 0.2·√max(rows, columns) (match_rms_adamw) or √(rows/columns) (spectral_unclamped).\n\
          Source: Jordan et al. 2024, kellerjordan.github.io/posts/muon; Liu et al. 2025, arXiv:2502.16982.\n\
          verl: torch.optim.Muon.\n\
          OpenRLHF: muon, whose Adam learning rate is adamw_lr.\n\
          Deviation: the iteration runs in float32, torch's in bfloat16. The matrices have the shapes of the files, as in torch: GPT-2 and GPT-NeoX \
          store q, k and v as one, and GPT-2 stores [in, out]. The matrices of experts are orthogonal one by one; torch refuses them.\n\
          When: pre-training has used it, or AdamW is slow to learn; match_rms_adamw takes the learning rate of AdamW.",
    reads: &["betas", "eps", "weight_decay"],
    options: &[
        OptimizerOption { name: "momentum", default: "0.95", doc: "Decay of the mean of gradients." },
        OptimizerOption { name: "nesterov", default: "true", doc: "Mix the gradient into its mean once more." },
        OptimizerOption { name: "ns_steps", default: "5", doc: "Iterations of Newton-Schulz." },
        OptimizerOption { name: "ns_coefficients", default: "[3.4445, -4.775, 2.0315]", doc: "Coefficients of each iteration." },
        OptimizerOption {
            name: "adjust_lr_fn",
            default: "original",
            doc: "Scale of the step by the shape: original, match_rms_adamw or spectral_unclamped.",
        },
        OptimizerOption {
            name: "adamw_lr",
            default: "null",
            doc: "Peak learning rate of AdamW, with the same schedule; null is lr.",
        },
    ],
    build,
};

/// Smallest norm that a matrix is divided by.
const MIN_NORM: f32 = 1e-7;

struct Muon {
    momentum: f64,
    nesterov: bool,
    ns_steps: usize,
    ns_coefficients: [f64; 3],
    scale: fn(rows: f64, columns: f64) -> f64,
    weight_decay: f64,
    /// AdamW's learning rate as a share of Muon's.
    adamw_share: f64,
    adamw: AdamW,
}

fn build(settings: &OptimizerSettings) -> Result<Box<dyn Rule>> {
    let scale = settings.choice("adjust_lr_fn", &["original", "match_rms_adamw", "spectral_unclamped"])?;
    let adamw_lr = settings.optional_number("adamw_lr", "null or a number that is at least 0", |number| number >= 0.0)?;
    settings.require(adamw_lr.is_none() || settings.lr > 0.0, "`adamw_lr` follows the schedule of `lr`, which is 0")?;
    Ok(Box::new(Muon {
        momentum: settings.decay("momentum")?,
        nesterov: settings.flag("nesterov")?,
        ns_steps: settings
            .number("ns_steps", "a whole number from 1 to 99", |steps| steps.fract() == 0.0 && (1.0..100.0).contains(&steps))?
            as usize,
        ns_coefficients: settings.list("ns_coefficients")?,
        scale: match scale {
            "match_rms_adamw" => |rows, columns| 0.2 * rows.max(columns).sqrt(),
            "spectral_unclamped" => |rows, columns| (rows / columns).sqrt(),
            _ => |rows, columns| (rows / columns).max(1.0).sqrt(),
        },
        weight_decay: settings.weight_decay,
        adamw_share: adamw_lr.map_or(1.0, |lr| lr / settings.lr),
        adamw: AdamW(AdamWConfig::from_settings(settings)),
    }))
}

/// Returns the number of matrices, their rows and their columns, for the matrix of a block or of its adapter and for the matrices
/// of experts; all other parameters use AdamW.
fn matrices(parameter: Parameter) -> Option<[usize; 3]> {
    let shape = match *parameter.shape {
        [rows, columns] if !parameter.name.ends_with("_bias") => [1, rows, columns],
        [experts, rows, columns] if parameter.name.contains(".experts.") => [experts, rows, columns],
        _ => return None,
    };
    parameter.name.contains("layers.").then_some(shape)
}

impl Rule for Muon {
    fn sees_tensors(&self) -> bool {
        true
    }

    fn slots(&self, parameter: Parameter) -> Vec<Slot> {
        match matrices(parameter) {
            Some(_) => vec![Slot::f32("momentum_buffer", parameter.size())],
            None => self.adamw.slots(parameter),
        }
    }

    fn splits(&self, parameter: Parameter) -> bool {
        matrices(parameter).is_none() && self.adamw.splits(parameter)
    }

    fn update(&self, at: Step, trained: TrainedParam) -> UpdatedParam {
        let Some([count, rows, columns]) = matrices(trained.parameter) else {
            let at = Step { lr: at.lr * self.adamw_share, ..at };
            return self.adamw.update(at, trained);
        };
        let TrainedParam { weight: w, gradient: g, state: previous, .. } = trained;
        let g = g * at.grad_scale as f32;
        let [mean] = tensors(previous, &w.device(), || [w.zeros_like()]);
        let mean = mean.clone() + (g.clone() - mean) * (1.0 - self.momentum) as f32;
        let direction = match self.nesterov {
            true => g.clone() + (mean.clone() - g) * self.momentum as f32,
            false => mean.clone(),
        };
        let direction = direction.reshape([count, rows * columns]);
        let of_matrix = |index: usize| {
            let matrix = direction.clone().narrow(0, index, 1).reshape([rows, columns]);
            orthogonal(matrix, self.ns_coefficients, self.ns_steps).reshape([rows * columns])
        };
        let direction: Tensor<1> = Tensor::cat((0..count).map(of_matrix).collect(), 0);
        let lr = (at.lr * (self.scale)(rows as f64, columns as f64)) as f32;
        let w = w * (1.0 - at.lr * self.weight_decay) as f32 - direction * lr;
        (w, state([mean]))
    }
}

/// Brings the singular values of a matrix near 1, by the quintic iteration of Newton and Schulz.
fn orthogonal(matrix: Tensor<2>, [a, b, c]: [f64; 3], steps: usize) -> Tensor<2> {
    let [rows, columns] = matrix.dims();
    // For a wide matrix, the matmul of the matrix with its transpose is the smaller one.
    let mut x = if rows > columns { matrix.transpose() } else { matrix };
    let norm = x.clone().square().sum().sqrt().clamp_min(MIN_NORM).reshape([1, 1]);
    x = x / norm;
    for _ in 0..steps {
        let gram = x.clone().matmul(x.clone().transpose());
        let polynomial = gram.clone() * b as f32 + gram.clone().matmul(gram) * c as f32;
        x = x.clone() * a as f32 + polynomial.matmul(x);
    }
    if rows > columns { x.transpose() } else { x }
}
