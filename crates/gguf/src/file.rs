//! Writes a GGUF file, version 3: a header of metadata and of the tensors' places, then their values, one tensor at a time.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::tensor_type::TensorType;

const MAGIC: &[u8; 4] = b"GGUF";
const VERSION: u32 = 3;
/// Tensors begin at multiples of this, the specification's default.
const ALIGNMENT: usize = 32;

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Meta {
    U32(u32),
    F32(f32),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    F32s(Vec<f32>),
    I32s(Vec<i32>),
}

impl From<&str> for Meta {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A tensor of a file, whose values are computed when it is written.
pub(crate) struct FileTensor<'a> {
    pub name: String,
    /// The shape in transformers' order: the last dimension is the row.
    pub shape: Vec<usize>,
    pub kind: TensorType,
    pub values: Box<dyn Fn() -> Result<Vec<f32>> + 'a>,
}

/// Writes a file.
///
/// # Errors
/// If the file cannot be written, or a tensor has a value that its type cannot hold.
pub(crate) fn write(path: &Path, metadata: &[(String, Meta)], tensors: &[FileTensor]) -> Result<()> {
    let written = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(written)?);
    let header = header(metadata, tensors);
    file.write_all(&header).with_context(written)?;
    pad(&mut file, header.len()).with_context(written)?;
    for tensor in tensors {
        let values = (tensor.values)()?;
        if let Some(x) = values.iter().find(|x| !x.is_finite()) {
            bail!("tensor `{}` holds {x}; all weights of a model must be finite", tensor.name);
        }
        let Some(bytes) = tensor.kind.encode(&values) else {
            bail!("tensor `{}` has values that are too large for {}; write bfloat16 or float32", tensor.name, tensor.kind.name());
        };
        file.write_all(&bytes).with_context(written)?;
        pad(&mut file, bytes.len()).with_context(written)?;
    }
    file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all()).with_context(written)
}

/// Fills up to the next place where a tensor may begin.
fn pad(file: &mut impl Write, length: usize) -> std::io::Result<()> {
    file.write_all(&vec![0; length.next_multiple_of(ALIGNMENT) - length])
}

fn header(metadata: &[(String, Meta)], tensors: &[FileTensor]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        text(&mut out, key);
        meta(&mut out, value);
    }
    let mut offset = 0u64;
    for tensor in tensors {
        text(&mut out, &tensor.name);
        out.extend((tensor.shape.len() as u32).to_le_bytes());
        // ggml names the row first.
        tensor.shape.iter().rev().for_each(|size| out.extend((*size as u64).to_le_bytes()));
        out.extend(tensor.kind.id().to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += tensor.kind.bytes(tensor.shape.iter().product()).next_multiple_of(ALIGNMENT) as u64;
    }
    out
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Writes the number of a value's type, and the value.
fn meta(out: &mut Vec<u8>, value: &Meta) {
    let array = |out: &mut Vec<u8>, kind: u32, count: usize| {
        out.extend(9u32.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend((count as u64).to_le_bytes());
    };
    match value {
        Meta::U32(x) => {
            out.extend(4u32.to_le_bytes());
            out.extend(x.to_le_bytes());
        }
        Meta::F32(x) => {
            out.extend(6u32.to_le_bytes());
            out.extend(x.to_le_bytes());
        }
        Meta::Bool(x) => {
            out.extend(7u32.to_le_bytes());
            out.push(u8::from(*x));
        }
        Meta::Text(x) => {
            out.extend(8u32.to_le_bytes());
            text(out, x);
        }
        Meta::Texts(all) => {
            array(out, 8, all.len());
            all.iter().for_each(|x| text(out, x));
        }
        Meta::F32s(all) => {
            array(out, 6, all.len());
            all.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
        Meta::I32s(all) => {
            array(out, 5, all.len());
            all.iter().for_each(|x| out.extend(x.to_le_bytes()));
        }
    }
}
