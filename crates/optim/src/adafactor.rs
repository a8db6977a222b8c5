//! Adafactor: instead of a matrix's second moment, it stores only the means of its rows and columns.

use anyhow::Result;
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use super::kind::OptimizerKind;
use super::rule::{Parameter, Rule, Slot, Step, StoredTensor, TrainedParam, UpdatedParam};
use super::settings::{OptimizerOption, OptimizerSettings};
use burnish_model::ops::{f32s, flex_f32, sum_squares, tensor_from_vec};

pub(super) const ADAFACTOR: OptimizerKind = OptimizerKind {
    name: "Adafactor",
    aliases: &["adafactor"],
    doc: "Adam without a first moment, and with the second moment of a matrix reduced to rows and columns.\n\
          Formula: β = 1 − t^decay_rate; r ← βr + (1 − β)·mean_cols(g² + ε₁), c likewise over rows; u = g/√(r·c/mean(r)); \
          u ← u/max(1, rms(u)/clip_threshold); w ← w·(1 − lr·λ) − lr·u, with scale_parameter lr·max(ε₂, rms(w)).\n\
          Paper: Shazeer & Stern 2018, arXiv:1804.04235.\n\
          TRL: transformers' Adafactor, with the scale_parameter and relative_step that its Trainer sets: false.\n\
          When: the state of AdamW takes too much memory.",
    reads: &["weight_decay"],
    options: &[
        OptimizerOption {
            name: "eps",
            default: "[1e-30, 1e-3]",
            doc: "Constants added to the squared gradient, and used as the least size of the weights.",
        },
        OptimizerOption { name: "clip_threshold", default: "1", doc: "Largest root mean square of an update, before lr." },
        OptimizerOption { name: "decay_rate", default: "-0.8", doc: "Exponent of the decay of the second moment." },
        OptimizerOption { name: "beta1", default: "null", doc: "Decay of the mean of updates; null disables it." },
        OptimizerOption { name: "scale_parameter", default: "false", doc: "Scale lr by the root mean square of the weights." },
        OptimizerOption { name: "relative_step", default: "false", doc: "Use min(0.01, 1/√t) instead of lr and its schedule." },
        OptimizerOption { name: "warmup_init", default: "false", doc: "Begin relative_step at 1e-6·t." },
    ],
    build,
};

struct Adafactor {
    eps: [f64; 2],
    clip_threshold: f64,
    decay_rate: f64,
    beta1: Option<f64>,
    weight_decay: f64,
    scale_parameter: bool,
    relative_step: bool,
    warmup_init: bool,
}

fn build(settings: &OptimizerSettings) -> Result<Box<dyn Rule>> {
    let rule = Adafactor {
        eps: settings.list("eps")?,
        clip_threshold: settings.number("clip_threshold", "a number above 0", |number| number > 0.0)?,
        decay_rate: settings.number("decay_rate", "a number below 0", |number| number < 0.0)?,
        beta1: settings.optional_number("beta1", "null or a number from 0 to below 1", |number| (0.0..1.0).contains(&number))?,
        weight_decay: settings.weight_decay,
        scale_parameter: settings.flag("scale_parameter")?,
        relative_step: settings.flag("relative_step")?,
        warmup_init: settings.flag("warmup_init")?,
    };
    settings.require(!rule.warmup_init || rule.relative_step, "`warmup_init` needs `relative_step`")?;
    Ok(Box::new(rule))
}

impl Adafactor {
    /// Returns the decay of the second moment at an update.
    fn beta2(&self, number: u64) -> f64 {
        1.0 - (number as f64).powf(self.decay_rate)
    }

    /// Returns the learning rate before it is scaled by the weights.
    fn rate(&self, at: Step) -> f64 {
        let number = at.number as f64;
        match (self.relative_step, self.warmup_init) {
            (false, _) => at.lr,
            (true, true) => (1e-6 * number).min(1.0 / number.sqrt()),
            (true, false) => 0.01f64.min(1.0 / number.sqrt()),
        }
    }
}

impl Rule for Adafactor {
    fn sees_tensors(&self) -> bool {
        true
    }

    fn slots(&self, parameter: Parameter) -> Vec<Slot> {
        let size = parameter.size();
        let mut slots = match parameter.shape {
            [rows, columns] => vec![Slot::f32("exp_avg_sq_row", *rows), Slot::f32("exp_avg_sq_col", *columns)],
            [experts, rows, columns] => {
                vec![Slot::f32("exp_avg_sq_row", experts * rows), Slot::f32("exp_avg_sq_col", experts * columns)]
            }
            _ => vec![Slot::f32("exp_avg_sq", size)],
        };
        slots.extend(self.beta1.map(|_| Slot::f32("exp_avg", size)));
        slots
    }

    fn update(
        &self,
        at: Step,
        TrainedParam { parameter, weight: w, gradient: g, state: previous }: TrainedParam,
    ) -> UpdatedParam {
        let (device, beta2) = (w.device(), self.beta2(at.number));
        let mut old: Vec<Tensor<1>> = match previous {
            Some(previous) => previous.into_iter().map(|stored| stored.numbers(&device)).collect(),
            None => self.slots(parameter).iter().map(|slot| Tensor::zeros([slot.size], &device)).collect(),
        };
        let first = self.beta1.and_then(|beta1| Some((beta1 as f32, (1.0 - beta1) as f32, old.pop()?)));
        let g = g * at.grad_scale as f32;
        let square = g.clone().square() + self.eps[0] as f32;
        let moved = |old: Tensor<1>, new: Tensor<1>| old * beta2 as f32 + new * (1.0 - beta2) as f32;
        let mut old = old.into_iter();
        let (update, mut new) = match (parameter.shape, old.next(), old.next()) {
            (&[rows, columns], Some(row), Some(column)) => {
                let square = square.reshape([rows, columns]);
                let row = moved(row, square.clone().mean_dim(1).reshape([rows]));
                let column = moved(column, square.mean_dim(0).reshape([columns]));
                let scale = (row.clone() / row.clone().mean()).sqrt().recip().reshape([rows, 1]);
                let update = scale * column.clone().sqrt().recip().reshape([1, columns]);
                (update.reshape([rows * columns]) * g, vec![row, column])
            }
            // As in transformers, each expert has its own factors.
            (&[experts, rows, columns], Some(row), Some(column)) => {
                let square = square.reshape([experts, rows, columns]);
                let row = moved(row, square.clone().mean_dim(2).reshape([experts * rows]));
                let column = moved(column, square.mean_dim(1).reshape([experts * columns]));
                let by_expert = row.clone().reshape([experts, rows]);
                let scale = (by_expert.clone() / by_expert.mean_dim(1)).sqrt().recip().reshape([experts, rows, 1]);
                let update = scale * column.clone().sqrt().recip().reshape([experts, 1, columns]);
                (update.reshape([experts * rows * columns]) * g, vec![row, column])
            }
            (_, moment, _) => {
                let moment = moved(moment.unwrap_or_else(|| square.zeros_like()), square);
                (moment.clone().sqrt().recip() * g, vec![moment])
            }
        };
        let clip = (rms(&update, &device) / self.clip_threshold as f32).clamp_min(1.0);
        let rate = self.rate(at);
        // The rate is a tensor: reading the size of the weights back would wait for the GPU.
        let rate = match self.scale_parameter {
            true => rms(&w, &device).clamp_min(self.eps[1] as f32) * rate as f32,
            false => Tensor::full([1], rate as f32, &device),
        };
        let update = update / clip * rate.clone();
        let update = match first {
            None => update,
            Some((beta1, gain, mean)) => {
                let mean = mean * beta1 + update * gain;
                new.push(mean.clone());
                mean
            }
        };
        let w = if self.weight_decay == 0.0 { w } else { w.clone() - w * (rate * self.weight_decay as f32) };
        (w - update, new.into_iter().map(StoredTensor::Numbers).collect())
    }
}

/// Returns the root mean square of a tensor, as a tensor of one element.
fn rms(values: &Tensor<1>, device: &Device) -> Tensor<1> {
    let size = values.dims()[0] as f64;
    match flex_f32(values) {
        // Parts of a fixed size, added in order: the result does not depend on the number of threads.
        Some(values) => {
            let parts: Vec<f64> = f32s(&values).par_chunks(64 * 1024).map(sum_squares).collect();
            tensor_from_vec(vec![(parts.iter().sum::<f64>() / size).sqrt() as f32], [1], device)
        }
        None => (values.clone().square().sum() / size as f32).sqrt(),
    }
}
