//! Copies of parameters in a dtype shorter than f32, cast once for several passes over the same weights.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use burn::module::{Param, ParamId};
use burn::tensor::{FloatDType, Tensor};

use super::ops::cast;

/// Copies of parameters, flat, each made on first use. They do not follow later changes: a caller that changes weights must drop
/// them.
#[derive(Default)]
pub(crate) struct LowPrecisionWeights(Mutex<HashMap<ParamId, Tensor<1>>>);

impl LowPrecisionWeights {
    /// Returns the parameter in `dtype`, without gradients.
    pub(crate) fn get<const D: usize>(&self, parameter: &Param<Tensor<D>>, dtype: FloatDType) -> Tensor<D> {
        let value = parameter.val().inner();
        let shape = value.dims();
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = copies.entry(parameter.id).or_insert_with(|| cast(value, dtype).flatten(0, D - 1));
        copy.clone().reshape(shape)
    }
}
