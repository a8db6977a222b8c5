//! The inputs of a selective scan: shape, tensors, layout.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::flex::{f32s, flex_f32};
use super::packed::Packed;

/// The heads of a selective scan. The number of heads is a multiple of the groups; consecutive heads share a group's B and C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanShape {
    pub heads: usize,
    pub head_dim: usize,
    pub groups: usize,
    /// The size of B and C of a group.
    pub state_dim: usize,
    /// The smallest and the largest time step.
    pub limits: [f32; 2],
}

impl ScanShape {
    /// The width of the inputs of all heads, and of the outputs.
    pub fn values(self) -> usize {
        self.heads * self.head_dim
    }

    /// The width of B of all groups, or of C.
    pub fn keys(self) -> usize {
        self.groups * self.state_dim
    }

    /// The width of x, B and C together.
    pub fn width(self) -> usize {
        self.values() + 2 * self.keys()
    }

    /// The elements of the states of all heads.
    pub fn states(self) -> usize {
        self.heads * self.state()
    }

    /// The elements of the state of one head.
    pub(super) fn state(self) -> usize {
        self.state_dim * self.head_dim
    }

    /// The number of heads that share B and C.
    pub(super) fn group(self) -> usize {
        self.heads / self.groups
    }
}

/// The inputs of a selective scan.
#[derive(Clone, Debug)]
pub struct ScanTensors {
    /// x of all heads, B and C of all groups, [rows, width].
    pub xbc: Tensor<2>,
    /// Time steps before their bias, [rows, heads].
    pub dt: Tensor<2>,
    /// `[heads]`
    pub a_log: Tensor<1>,
    /// `[heads]`
    pub dt_bias: Tensor<1>,
    /// D, the factor on x in the output, `[heads]`.
    pub skip: Tensor<1>,
}

impl ScanTensors {
    /// The slices of the tensors if all are on the CPU in f32, outside any graph.
    pub(super) fn slices(&self) -> Option<[FlexTensor; 5]> {
        let Self { xbc, dt, a_log, dt_bias, skip } = self;
        Some([flex_f32(xbc)?, flex_f32(dt)?, flex_f32(a_log)?, flex_f32(dt_bias)?, flex_f32(skip)?])
    }
}

/// The rows and heads of a selective scan.
#[derive(Clone, Debug)]
pub struct ScanLayout {
    pub packed: Arc<Packed>,
    pub shape: ScanShape,
}

/// The values of a scan's inputs.
#[derive(Clone, Copy)]
pub(super) struct ScanSlices<'a> {
    pub xbc: &'a [f32],
    pub dt: &'a [f32],
    pub a_log: &'a [f32],
    pub dt_bias: &'a [f32],
    pub skip: &'a [f32],
}

impl<'a> ScanSlices<'a> {
    pub(super) fn new([xbc, dt, a_log, dt_bias, skip]: &'a [FlexTensor; 5]) -> Self {
        Self { xbc: f32s(xbc), dt: f32s(dt), a_log: f32s(a_log), dt_bias: f32s(dt_bias), skip: f32s(skip) }
    }

    /// x of a head in a row.
    pub(super) fn x(&self, shape: ScanShape, head: usize, row: usize) -> &'a [f32] {
        &self.xbc[row * shape.width() + head * shape.head_dim..][..shape.head_dim]
    }

    /// B of a group, from a row on; rows are `width` apart.
    pub(super) fn b(&self, shape: ScanShape, group: usize, row: usize) -> &'a [f32] {
        &self.xbc[row * shape.width() + shape.values() + group * shape.state_dim..]
    }

    /// C of a group, from a row on; rows are `width` apart.
    pub(super) fn c(&self, shape: ScanShape, group: usize, row: usize) -> &'a [f32] {
        &self.xbc[row * shape.width() + shape.values() + shape.keys() + group * shape.state_dim..]
    }

    pub(super) fn check(&self, rows: usize, shape: ScanShape) {
        assert_eq!((self.xbc.len(), self.dt.len()), (rows * shape.width(), rows * shape.heads));
        assert_eq!([self.a_log.len(), self.dt_bias.len(), self.skip.len()], [shape.heads; 3]);
    }
}
