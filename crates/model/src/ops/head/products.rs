//! The head's matmul h·wᵀ and its backward pass, for a chunk of tokens.

use std::ops::Range;

use burn::tensor::{DType, FloatDType, Tensor};

use super::super::flex::cast;
use super::types::Head;

/// Tokens per chunk on a GPU: 600 MB of logits at a vocabulary of 150,000. Each chunk adds to the gradient of the whole matrix,
/// so few chunks are better.
pub(crate) const GPU_CHUNK: usize = 1024;

/// Computes the backward pass of h·wᵀ from its gradient [tokens, v]: adds the gradient of the matrix to `dw`, and returns the
/// gradient of the hidden states.
pub(super) fn through(policy: Head, tokens: &Range<usize>, d: Tensor<2>, dw: Option<&mut Tensor<2>>) -> Tensor<2> {
    if let Some(dw) = dw {
        let grad = d.clone().transpose().matmul(slice(policy.hidden, tokens));
        dw.inplace(|sum| {
            let grad = grad.cast(sum.dtype());
            sum + grad
        });
    }
    wide(d.matmul(policy.w.clone()))
}

/// h·wᵀ of these tokens, [tokens, v].
pub(super) fn products(head: Head, tokens: &Range<usize>) -> Tensor<2> {
    slice(head.hidden, tokens).matmul(head.w.clone().transpose())
}

/// The hidden states of these tokens.
fn slice(hidden: &Tensor<2>, tokens: &Range<usize>) -> Tensor<2> {
    hidden.clone().slice([tokens.clone(), 0..hidden.dims()[1]])
}

/// Casts shorter dtypes to f32.
pub(super) fn wide(x: Tensor<2>) -> Tensor<2> {
    if x.dtype() == DType::F64 { x } else { cast(x, FloatDType::F32) }
}
