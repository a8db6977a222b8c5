//! The first kernel of a decode step with fixed buffers: it prepares the inputs of each row where the other kernels expect them.
//! One cube per row.

use burn::backend::TensorMetadata;
use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{UNITS, buffer, cube_dim, elem, empty, grid, row_of_cube};
use super::rows::Rows;
use super::sample::SAMPLE_RESULTS;
use crate::ops::block_tables::BLOCK;

/// The number of values of a row in [`StepBuffers::inputs`]. In order: its token, or −1 for the token sampled in the previous step; its
/// position; the cache block of this position.
pub(crate) const STEP_INPUTS: usize = 3;

/// Compile-time parameters of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PrologueParams {
    /// The size of an embedded token.
    h: usize,
    /// The rotated pairs of a head; 0 for learned positions.
    half: usize,
    scaled: bool,
    learned: bool,
}

#[cube(launch)]
fn prologue_rows<E: Float, P: Float, A: Float>(
    inputs: &[i32],
    drawn: &[f32],
    embedding: &[E],
    learned: &[P],
    all_cos: &[A],
    all_sin: &[A],
    table: &mut [i32],
    lens: &mut [i32],
    x: &mut [f32],
    cos: &mut [A],
    sin: &mut [A],
    rows: usize,
    table_width: usize,
    embedding_stride: usize,
    learned_stride: usize,
    scale: f32,
    #[comptime] params: PrologueParams,
    #[comptime] units: usize,
    #[define(E, P, A)] _dtypes: [ElemType; 3],
) {
    let row = row_of_cube(rows);
    let unit = UNIT_POS as usize;
    let at = row * STEP_INPUTS;
    let position = inputs[at + 1] as usize;
    let mut token = drawn[row * SAMPLE_RESULTS] as usize;
    if inputs[at] >= 0 {
        token = inputs[at] as usize;
    }
    let h = comptime!(params.h);
    let half = comptime!(params.half);
    for i in range_stepped(unit, h, units) {
        let mut value = f32::cast_from(embedding[token * embedding_stride + i]);
        if comptime!(params.scaled) {
            value *= scale;
        }
        if comptime!(params.learned) {
            value += f32::cast_from(learned[position * learned_stride + i]);
        }
        x[row * h + i] = value;
    }
    for i in range_stepped(unit, half, units) {
        cos[row * half + i] = all_cos[position * half + i];
        sin[row * half + i] = all_sin[position * half + i];
    }
    if unit == 0 {
        table[row * table_width + position / BLOCK] = inputs[at + 2];
        lens[row] = inputs[at + 1] + 1;
    }
}

/// The parts of the model that the kernel reads.
pub(crate) struct Prologue {
    /// [vocabulary, h]
    pub embedding: Rows,
    /// The factor on embedded tokens.
    pub scale: Option<f32>,
    /// The embedding of learned positions [positions, h], if the model has one.
    pub learned: Option<Rows>,
    /// cos and sin [positions, rotated / 2] of every position, if the model has rotary positions.
    pub angles: Option<[CubeTensor; 2]>,
}

/// The buffers of a step that keep their addresses.
pub(crate) struct StepBuffers {
    /// [`STEP_INPUTS`] values per row, i32.
    pub inputs: CubeTensor,
    /// The results of the previous step, [`SAMPLE_RESULTS`] values per row.
    pub drawn: CubeTensor,
    /// The blocks of each row's sequence [rows · width], i32; the kernel adds the block of the position.
    pub table: CubeTensor,
    /// The length of each row's sequence, including the new position, `[rows]`, i32; the kernel writes it.
    pub lens: CubeTensor,
}

/// Returns the embedded tokens [rows, h], f32, and the angles of their positions, [rows, rotated / 2] each.
pub(crate) fn decode_prologue(model: &Prologue, buffers: &StepBuffers) -> (CubeTensor, Option<[CubeTensor; 2]>) {
    let (rows, h, embedding) = (buffers.lens.shape()[0], model.embedding.width, &model.embedding.tensor);
    let half = model.angles.as_ref().map_or(0, |[cos, _]| cos.shape()[1]);
    let x = empty(embedding, [rows, h], DType::F32);
    let angles = model.angles.as_ref().map(|all| all.each_ref().map(|all| empty(all, [rows, half], all.dtype)));
    // A kernel needs a buffer for each argument. The kernel does not access the buffers of parts that the model lacks.
    let [all_cos, all_sin] = model.angles.as_ref().map_or([embedding; 2], |all| all.each_ref());
    let [cos, sin] = angles.as_ref().map_or([&x; 2], |angles| angles.each_ref());
    let learned = model.learned.as_ref().unwrap_or(&model.embedding);
    prologue_rows::launch(
        &x.client,
        grid(rows),
        cube_dim(),
        buffer(&buffers.inputs),
        buffer(&buffers.drawn),
        model.embedding.buffer(),
        learned.buffer(),
        buffer(all_cos),
        buffer(all_sin),
        buffer(&buffers.table),
        buffer(&buffers.lens),
        buffer(&x),
        buffer(cos),
        buffer(sin),
        rows,
        buffers.table.shape()[0] / rows,
        model.embedding.stride,
        learned.stride,
        model.scale.unwrap_or(1.0),
        PrologueParams { h, half, scaled: model.scale.is_some(), learned: model.learned.is_some() },
        UNITS,
        [elem(embedding), elem(&learned.tensor), elem(all_cos)],
    );
    (x, angles)
}
