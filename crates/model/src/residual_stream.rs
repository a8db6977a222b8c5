//! The residual stream of a pass.

use burn::tensor::{FloatDType, Tensor};

use super::pass::{Norm, Pass};

/// The residual stream [n, h], f32. The last summand is kept apart until the stream is read: if a norm follows, a GPU adds and
/// normalises in one kernel.
pub(crate) struct ResidualStream {
    x: Tensor<2>,
    /// In the dtype of the pass, or f32.
    added: Option<Tensor<2>>,
}

impl ResidualStream {
    pub(crate) fn new(x: Tensor<2>) -> Self {
        Self { x, added: None }
    }

    /// Adds y [n, h], times the family's factor.
    pub(crate) fn add(&mut self, y: Tensor<2>, pass: &Pass) {
        self.settle(pass);
        self.added = Some(match pass.config.residual_scale {
            Some(scale) => y * scale,
            None => y,
        });
    }

    /// Multiplies the stream by a factor `[1]`.
    pub(crate) fn scale(&mut self, by: Tensor<1>, pass: &Pass) {
        self.settle(pass);
        self.x.inplace(|x| x * by.unsqueeze::<2>());
    }

    /// Returns the input of attention or MLP [n, h], in the dtype of the pass: the stream's norm, or the stream itself.
    pub(crate) fn input(&mut self, norm: Option<&Norm>, pass: &Pass) -> Tensor<2> {
        match norm {
            Some(norm) => self.normed(norm, pass),
            None => {
                self.settle(pass);
                pass.down(self.x.clone())
            }
        }
    }

    /// Returns the stream's norm [n, h], in the dtype of the pass.
    pub(crate) fn normed(&mut self, norm: &Norm, pass: &Pass) -> Tensor<2> {
        if let Some((x, y)) = pass.norm_of_sum(&self.x, self.added.as_ref(), norm, pass.dtype) {
            *self = Self::new(x);
            return y;
        }
        self.settle(pass);
        pass.down(pass.norm(self.x.clone(), norm))
    }

    /// Returns the norm after the last block [n, h], f32.
    pub(crate) fn last_norm(self, norm: &Norm, pass: &Pass) -> Tensor<2> {
        if let Some((_, y)) = pass.norm_of_sum(&self.x, self.added.as_ref(), norm, FloatDType::F32) {
            return y;
        }
        pass.norm(self.value(pass), norm)
    }

    /// Returns the value of the stream.
    pub(crate) fn value(mut self, pass: &Pass) -> Tensor<2> {
        self.settle(pass);
        self.x
    }

    fn settle(&mut self, pass: &Pass) {
        if let Some(y) = self.added.take() {
            self.x.inplace(|x| x + pass.up(y));
        }
    }
}
