//! What products take of a model's parameters in a shorter dtype than f32, cast once for several passes over the same weights.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use burn::module::{Param, ParamId};
use burn::tensor::{FloatDType, Tensor};

use super::ops::cast;

/// Copies of parameters, each made when it is first asked for, and flat. They are of the weights that the parameters had then: whoever changes
/// weights holds none.
#[derive(Default)]
pub struct Narrow(Mutex<HashMap<ParamId, Tensor<1>>>);

impl Narrow {
    /// The parameter in `dtype`, without gradients.
    pub fn of<const D: usize>(&self, parameter: &Param<Tensor<D>>, dtype: FloatDType) -> Tensor<D> {
        let value = parameter.val().inner();
        let shape = value.dims();
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = copies.entry(parameter.id).or_insert_with(|| cast(value, dtype).flatten(0, D - 1));
        copy.clone().reshape(shape)
    }
}
