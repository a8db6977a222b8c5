//! The tensors of files that hold the experts of a mixture, and their conversion to and from the network's parameters
//! `….experts.gate_proj`, `up_proj` [experts, intermediate, h] and `down_proj` [experts, h, intermediate] with their biases.

use anyhow::{Context, Result, bail, ensure};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::expert_names::FileExperts;
use super::mixture_config::ExpertLayout;
use crate::config::DecoderConfig;
use crate::tensor_values::{Values, name_in_files};
use crate::weight_tensor::Tensors;

/// Reads a parameter of this shape. Also returns the names of the tensors that hold it.
///
/// # Errors
/// If a tensor is missing, has another shape, or has a value that is not finite.
pub(crate) fn read_experts<'t>(
    tensors: &'t Tensors,
    parameter: FileExperts,
    shape: &[usize],
    config: &DecoderConfig,
) -> Result<(Vec<&'t String>, Vec<f32>)> {
    let layout = config.mixture.as_ref().map_or(ExpertLayout::PerExpert, |mixture| mixture.layout);
    let (all, part) = parameter.of_all(config.naming);
    let find = |name: &str| name_in_files(tensors, name, name);
    match (layout, find(&all)) {
        (ExpertLayout::PerExpert, None) => {
            let mut names = Vec::with_capacity(shape[0]);
            let mut values = Vec::with_capacity(shape.iter().product());
            for expert in 0..shape[0] {
                let name = parameter.of_expert(expert, config.naming);
                let name = find(&name).with_context(|| format!("tensor `{name}` is missing"))?;
                values.extend(read(tensors, name, &shape[1..])?);
                names.push(name);
            }
            Ok((names, values))
        }
        (ExpertLayout::Joined, None) => bail!("tensor `{all}` is missing"),
        (ExpertLayout::PerExpert | ExpertLayout::Joined, Some(name)) => {
            let rows = if part.is_some() { 2 * shape[1] } else { shape[1] };
            let whole: Vec<usize> = [shape[0], rows].into_iter().chain(shape[2..].iter().copied()).collect();
            let values = read(tensors, name, &whole)?;
            let size: usize = shape[1..].iter().product();
            let of_expert = |values: &[f32]| values[part.unwrap_or(0) * size..][..size].to_vec();
            let per_expert = values.len() / shape[0];
            Ok((vec![name], values.chunks_exact(per_expert).flat_map(of_expert).collect()))
        }
        (ExpertLayout::Interleaved, Some(name)) => {
            let place = Interleaved::new(shape, part, parameter.is_bias);
            let values = read(tensors, name, &place.whole)?;
            Ok((vec![name], place.elements().map(|i| values[i]).collect()))
        }
        (ExpertLayout::Interleaved, None) => {
            let [blocks, scales] = ["_blocks", "_scales"].map(|end| format!("{all}{end}"));
            let missing = || format!("tensor `{all}` is missing, and so is `{blocks}`");
            let (blocks, scales) = find(&blocks).zip(find(&scales)).with_context(missing)?;
            let values = packed(&tensors[blocks], &tensors[scales], shape, part).with_context(|| format!("tensor `{blocks}`"))?;
            Ok((vec![blocks, scales], values))
        }
    }
}

fn read(tensors: &Tensors, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let view = &tensors[name];
    ensure!(view.shape() == shape, "tensor `{name}` is {:?}, config.json makes it {shape:?}", view.shape());
    view.finite_values().with_context(|| format!("tensor `{name}`"))
}

/// A parameter's elements in a tensor of the interleaved layout.
struct Interleaved {
    /// The shape of the tensor.
    whole: Vec<usize>,
    /// The shape of the parameter: [experts, out, in], with an `in` of 1 for a bias.
    shape: [usize; 3],
    /// 0 for gate, 1 for up; `None` if the tensor has only this parameter.
    part: Option<usize>,
}

impl Interleaved {
    fn new(shape: &[usize], part: Option<usize>, is_bias: bool) -> Self {
        let [experts, out, width] = [shape[0], shape[1], shape.get(2).copied().unwrap_or(1)];
        let columns = if part.is_some() { 2 * out } else { out };
        let whole = if is_bias { vec![experts, columns] } else { vec![experts, width, columns] };
        Self { whole, shape: [experts, out, width], part }
    }

    /// For each element of the parameter, in row-major order, its index in the tensor.
    fn elements(&self) -> impl Iterator<Item = usize> {
        let [experts, out, width] = self.shape;
        let (step, first, columns) = self.part.map_or((1, 0, out), |part| (2, part, 2 * out));
        (0..experts)
            .flat_map(move |e| (0..out).flat_map(move |o| (0..width).map(move |i| (e * width + i) * columns + step * o + first)))
    }
}

/// The values of the 4 bits of MXFP4 (OCP Microscaling 1.0: 1 bit sign, 2 bits exponent, 1 bit mantissa).
const FP4: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];
/// The number of values that share a scale, and of bytes that hold them.
const RUN: usize = 32;

/// Unpacks a parameter from MXFP4: blocks [experts, rows, width / 32, 16] of two values a byte, the low bits first, and the
/// exponents of their scales, [experts, rows, width / 32], plus 127. Rows of gate and up alternate.
fn packed(blocks: &TensorView, scales: &TensorView, shape: &[usize], part: Option<usize>) -> Result<Vec<f32>> {
    let [experts, out, width] = <[usize; 3]>::try_from(shape).ok().context("a bias cannot be packed")?;
    ensure!(width.is_multiple_of(RUN), "config.json makes it rows of {width}, which is not a multiple of {RUN}");
    let rows = if part.is_some() { 2 * out } else { out };
    let expected = [experts, rows, width / RUN, RUN / 2];
    ensure!(blocks.shape() == expected, "it is {:?}, config.json makes it {expected:?}", blocks.shape());
    ensure!(scales.shape() == &expected[..3], "its scales are {:?}, not {:?}", scales.shape(), &expected[..3]);
    ensure!((blocks.dtype(), scales.dtype()) == (Dtype::U8, Dtype::U8), "packed values and scales must be bytes");
    let mut values = Vec::with_capacity(experts * out * width);
    for expert in 0..experts {
        for row in 0..out {
            let row = expert * rows + part.map_or(row, |part| 2 * row + part);
            for run in row * (width / RUN)..(row + 1) * (width / RUN) {
                let exponent = i32::from(scales.data()[run]) - 127;
                ensure!(exponent < 125, "a scale is 2^{exponent}; its values would not be finite");
                let scale = (f64::from(exponent)).exp2() as f32;
                for byte in &blocks.data()[run * RUN / 2..(run + 1) * RUN / 2] {
                    values.extend([byte & 15, byte >> 4].map(|bits| FP4[usize::from(bits)] * scale));
                }
            }
        }
    }
    Ok(values)
}

/// The number of values that a tensor of a file holds. Packed experts hold two in a byte, and their scales none.
pub fn values_of(name: &str, tensor: &TensorView) -> usize {
    let count = tensor.shape().iter().product();
    match name.rsplit_once('_').filter(|(path, _)| path.contains(".experts.")) {
        Some((_, "blocks")) => 2 * count,
        Some((_, "scales")) => 0,
        _ => count,
    }
}

/// A function that writes a parameter's values to their positions in a tensor.
pub(crate) type PutValues<'a> = Box<dyn Fn(&mut [f32]) + 'a>;

/// A tensor of a file, which consists of parameters: its name, its shape, and a function that writes a parameter's values to
/// their positions in it.
pub(crate) struct WrittenExperts {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) put: PutValues<'static>,
}

/// The tensors that hold a parameter of this shape, as the family's files are published.
pub(crate) fn written_experts(
    parameter: FileExperts,
    shape: &[usize],
    values: Values,
    config: &DecoderConfig,
) -> Vec<WrittenExperts> {
    match config.mixture.as_ref().map(|mixture| mixture.layout) {
        Some(ExpertLayout::Interleaved) => {
            let (name, part) = parameter.of_all(config.naming);
            let place = Interleaved::new(shape, part, parameter.is_bias);
            let shape = place.whole.clone();
            let put = move |tensor: &mut [f32]| {
                place.elements().zip(values.all()).for_each(|(i, value)| tensor[i] = value);
            };
            vec![WrittenExperts { name, shape, put: Box::new(put) }]
        }
        Some(ExpertLayout::Joined) => {
            let (name, part) = parameter.of_all(config.naming);
            let size: usize = shape[1..].iter().product();
            let parts = if part.is_some() { 2 } else { 1 };
            let mut whole = shape.to_vec();
            whole[1] *= parts;
            let put = move |tensor: &mut [f32]| {
                let values = values.all();
                let experts = tensor.chunks_exact_mut(parts * size).zip(values.chunks_exact(size));
                experts.for_each(|(to, values)| to[part.unwrap_or(0) * size..][..size].copy_from_slice(values));
            };
            vec![WrittenExperts { name, shape: whole, put: Box::new(put) }]
        }
        _ => {
            let values = std::rc::Rc::new(values);
            let of_expert = |expert: usize| {
                let values = values.clone();
                let put = move |tensor: &mut [f32]| tensor.copy_from_slice(&values.row(expert));
                WrittenExperts {
                    name: parameter.of_expert(expert, config.naming),
                    shape: shape[1..].to_vec(),
                    put: Box::new(put),
                }
            };
            (0..shape[0]).map(of_expert).collect()
        }
    }
}

impl DecoderConfig {
    /// The tensors of single experts that files may hold as one tensor of this name, in order; `None` for another tensor.
    pub fn experts_in(&self, tensor: &str) -> Option<Vec<String>> {
        let mixture = self.mixture.as_ref().filter(|mixture| mixture.layout == ExpertLayout::PerExpert)?;
        FileExperts::joined_in(tensor, mixture.experts, self.naming)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::naming::PLAIN;

    #[test]
    fn packed_rows_alternate_between_gate_and_up() {
        // One expert of width 1 over 32 inputs: the row of gate is 0.5 · 2², the row of up is 6 and −6 in turn, · 2⁻¹.
        let blocks: Vec<u8> = [[0x11; 16], [0xf7; 16]].concat();
        let scales = vec![129, 126];
        let view = |shape: &[usize], data: &'static [u8]| TensorView::new(Dtype::U8, shape.to_vec(), data).unwrap();
        let (blocks, scales) = (view(&[1, 2, 1, 16], blocks.leak()), view(&[1, 2, 1], scales.leak()));
        let unpacked = |part| packed(&blocks, &scales, &[1, 1, 32], Some(part)).unwrap();
        assert_eq!(unpacked(0), [2.0; 32]);
        assert_eq!(unpacked(1), [3.0, -3.0].repeat(16));
    }

    #[test]
    fn names_of_experts_are_parsed() {
        let of = |parameter| FileExperts::of(parameter).map(|parsed| parsed.of_all(&PLAIN));
        assert_eq!(
            of("model.layers.1.mlp.experts.up_proj"),
            Some(("model.layers.1.mlp.experts.gate_up_proj".to_owned(), Some(1)))
        );
        let bias = Some(("model.layers.0.mlp.experts.down_proj_bias".to_owned(), None));
        assert_eq!(of("model.layers.0.mlp.experts.down_proj_bias"), bias);
        assert_eq!(of("model.layers.0.mlp.up_proj.weight"), None);
    }
}
