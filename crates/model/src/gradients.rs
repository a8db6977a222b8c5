//! Gradients by parameter name, accumulated over micro-batches.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use super::decoder::Decoder;
use super::ops::{add, f32s, flex_f32, sum_squares, to_host};

/// Elements of a chunk of a gradient. Σ g² is summed per chunk, then over the chunks in order. So it does not depend on which
/// rank sums which chunk.
pub const PART: usize = 64 * 1024;

/// One flat f32 gradient per parameter name, in name order, outside any graph.
#[derive(Default)]
pub struct Gradients(pub BTreeMap<String, Tensor<1>>);

impl Gradients {
    /// Adds to the gradient of `name`.
    pub fn add<const D: usize>(&mut self, name: &str, gradient: Tensor<D>) {
        let gradient: Tensor<1> = gradient.flatten(0, D - 1);
        let sum = match self.0.remove(name) {
            Some(sum) => add(sum, gradient),
            None => gradient,
        };
        self.0.insert(name.to_owned(), sum);
    }

    /// Moves the gradient of `name` out, so that it can be added to in place. Returns zeros if it does not exist yet.
    pub fn take(&mut self, name: &str, shape: [usize; 2], device: &Device) -> Tensor<2> {
        self.0.remove(name).map_or_else(|| Tensor::zeros(shape, device), |g| g.reshape(shape))
    }

    /// Takes the gradients of a network's parameters out of a backward pass.
    pub fn add_backward(&mut self, net: &Decoder, graph: &mut burn::tensor::Gradients) {
        struct Visitor<'a>(&'a mut Gradients, &'a mut burn::tensor::Gradients, Vec<String>);
        impl ModuleVisitor for Visitor<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if let Some(gradient) = param.val().grad_remove(self.1) {
                    self.0.add(&self.2.join("."), gradient);
                }
            }
            fn enter_module(&mut self, name: &str, _: &str) {
                self.2.push(name.to_owned());
            }
            fn exit_module(&mut self, _: &str, _: &str) {
                self.2.pop();
            }
        }
        net.visit(&mut Visitor(self, graph, Vec::new()));
    }

    /// The 2-norm of all gradients together, accumulated in f64.
    pub fn norm(&self) -> f64 {
        self.squares().map(|(_, squares)| squares).sum::<f64>().sqrt()
    }

    /// The 2-norm of each gradient.
    pub fn norms(&self) -> impl Iterator<Item = (&str, f64)> {
        self.squares().map(|(name, squares)| (name, squares.sqrt()))
    }

    /// The inner product with other gradients, in f64. A parameter without a gradient on one side counts as 0.
    pub fn dot(&self, other: &Self) -> f64 {
        let product = |(name, g): (&String, &Tensor<1>)| {
            let (g, other) = (to_host(g.clone()), to_host(other.0.get(name)?.clone()));
            Some(g.iter().zip(&other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>())
        };
        self.0.iter().filter_map(product).sum()
    }

    /// Σ g² of each gradient. On a GPU, one transfer reads all of them.
    pub fn squares(&self) -> impl Iterator<Item = (&str, f64)> {
        let here: Option<Vec<f64>> = self.0.values().map(|g| Some(squares(f32s(&flex_f32(g)?)))).collect();
        #[cfg(feature = "gpu")]
        let here = here.or_else(|| super::ops::squares_on_gpu(self.0.values()));
        let squares = here.unwrap_or_else(|| {
            let sums = self.0.values().map(|g| g.clone().square().sum()).collect();
            to_host(Tensor::cat(sums, 0)).into_iter().map(f64::from).collect()
        });
        self.0.keys().map(String::as_str).zip(squares)
    }

    /// Σ g² of each gradient, summed on the CPU for every device: the same bits for every number of ranks.
    pub fn squares_on_cpu(&self) -> impl Iterator<Item = (&str, f64)> {
        let of = |g: &Tensor<1>| flex_f32(g).map_or_else(|| squares(&to_host(g.clone())), |g| squares(f32s(&g)));
        self.0.iter().map(move |(name, g)| (name.as_str(), of(g)))
    }
}

/// Σ g² of a gradient.
fn squares(g: &[f32]) -> f64 {
    let parts: Vec<f64> = g.par_chunks(PART).map(sum_squares).collect();
    parts.iter().sum()
}
