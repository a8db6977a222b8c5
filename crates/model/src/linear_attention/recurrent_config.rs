//! The layers of a decoder that mix tokens by a recurrence, and their shape.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::hf_reader::HfReader;
use crate::ops::{DeltaHeads, ScanShape};

/// The layers that mix tokens by a recurrence in place of attention.
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrentLayers {
    /// For each layer, true if it is recurrent.
    pub layers: Vec<bool>,
    pub kind: RecurrentKind,
}

/// The kind of a decoder's recurrent layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecurrentKind {
    DeltaNet(DeltaNetShape),
    /// A gated convolution over the last `kernel` tokens; `bias` also for its projections.
    ShortConv {
        kernel: usize,
        bias: bool,
    },
    Mamba(MambaShape),
}

/// The shape of a gated delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaNetShape {
    pub heads: DeltaHeads,
    /// The number of tokens that the convolution of queries, keys and values sees.
    pub kernel: usize,
    /// True if files hold the projections as two matrices, key head by key head (Qwen3-Next).
    pub fused: bool,
}

/// The shape of a layer of Mamba-2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MambaShape {
    pub scan: ScanShape,
    /// The number of tokens that the convolution of x, B and C sees.
    pub kernel: usize,
    /// True if the convolution has a bias.
    pub conv_bias: bool,
    /// True if the projection into the layer, and the one out of it, have a bias.
    pub bias: [bool; 2],
    pub norm: MambaNorm,
    /// Factors on the projected z, x, B, C and time steps.
    pub factors: [f32; 5],
}

/// The norm of a layer of Mamba-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MambaNorm {
    None,
    /// norm(y · silu(z))
    BehindGate,
    /// norm(y) · silu(z)
    BeforeGate,
}

impl MambaShape {
    /// The outputs of the projection of a token: z, the inputs of the convolution, and time steps.
    pub(crate) fn projected(self) -> usize {
        self.scan.values() + self.scan.width() + self.scan.heads
    }
}

impl DeltaNetShape {
    /// The names and numbers of outputs of the projections of a token.
    pub(crate) fn projections(self) -> Vec<(&'static str, usize)> {
        let heads = self.heads;
        match self.fused {
            true => vec![("in_proj_qkvz", heads.width() + heads.values()), ("in_proj_ba", 2 * heads.value_heads)],
            false => vec![
                ("in_proj_qkv", heads.width()),
                ("in_proj_z", heads.values()),
                ("in_proj_b", heads.value_heads),
                ("in_proj_a", heads.value_heads),
            ],
        }
    }
}

impl RecurrentKind {
    /// The name of such a layer in a block.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DeltaNet(_) => "linear_attn",
            Self::ShortConv { .. } => "conv",
            Self::Mamba(_) => "mamba",
        }
    }

    /// The linear layers, as (name, inputs, outputs), for a hidden size.
    pub(crate) fn linears(self, h: usize) -> Vec<(&'static str, usize, usize)> {
        match self {
            Self::DeltaNet(shape) => {
                let into = shape.projections().into_iter().map(|(name, outputs)| (name, h, outputs));
                into.chain([("out_proj", shape.heads.values(), h)]).collect()
            }
            Self::ShortConv { .. } => vec![("in_proj", h, 3 * h), ("out_proj", h, h)],
            Self::Mamba(shape) => vec![("in_proj", h, shape.projected()), ("out_proj", shape.scan.values(), h)],
        }
    }

    /// The number of parameters that are not in matrices: the convolution, gates, a norm and biases.
    pub(crate) fn other_parameters(self, h: usize) -> usize {
        match self {
            Self::DeltaNet(DeltaNetShape { heads, kernel, .. }) => {
                heads.width() * kernel + 2 * heads.value_heads + heads.value_dim
            }
            Self::ShortConv { kernel, bias } => h * kernel + if bias { 5 * h } else { 0 },
            Self::Mamba(shape) => {
                let (width, has) = (shape.scan.width(), usize::from);
                let [into, out] = shape.bias;
                let biases = has(shape.conv_bias) * width + has(into) * shape.projected() + has(out) * h;
                let norm = has(shape.norm != MambaNorm::None) * shape.scan.values();
                width * shape.kernel + 3 * shape.scan.heads + norm + biases
            }
        }
    }

    /// The channels of the convolution, and the number of tokens that it sees.
    pub(crate) fn convolution(self, h: usize) -> (usize, usize) {
        match self {
            Self::DeltaNet(shape) => (shape.heads.width(), shape.kernel),
            Self::ShortConv { kernel, .. } => (h, kernel),
            Self::Mamba(shape) => (shape.scan.width(), shape.kernel),
        }
    }

    /// The elements of a sequence's state besides the inputs of the convolution.
    pub(crate) fn states(self) -> usize {
        match self {
            Self::DeltaNet(shape) => shape.heads.states(),
            Self::ShortConv { .. } => 0,
            Self::Mamba(shape) => shape.scan.states(),
        }
    }
}

impl HfReader<'_> {
    /// Reads `layer_types` of layers that are full_attention or `name`: true for layers of the latter. Without `layer_types`,
    /// `default` tells.
    pub(crate) fn recurrent(&self, layers: usize, name: &str, default: impl Fn(usize) -> bool) -> Result<Vec<bool>> {
        self.kinds_of_layers(layers, ["full_attention"], [name], default)
    }

    /// Reads `layer_types` of layers with a name of attention or of a recurrence: true for layers of the latter. Without
    /// `layer_types`, `default` tells.
    pub(crate) fn kinds_of_layers<const N: usize>(
        &self,
        layers: usize,
        attention: [&str; N],
        recurrent: [&str; N],
        default: impl Fn(usize) -> bool,
    ) -> Result<Vec<bool>> {
        let Some(kinds) = self.get("layer_types") else { return Ok((0..layers).map(default).collect()) };
        let kinds = kinds.as_array().filter(|kinds| kinds.len() == layers);
        let kinds = kinds.with_context(|| format!("`layer_types` must list the kind of each of the {layers} layers"))?;
        let kind = |kind: &Value| match kind.as_str() {
            Some(name) if attention.contains(&name) => Ok(false),
            Some(name) if recurrent.contains(&name) => Ok(true),
            _ => bail!(
                "`layer_types`: {kind} is not supported; supported are {} and {}",
                attention.join(", "),
                recurrent.join(", ")
            ),
        };
        kinds.iter().map(kind).collect()
    }

    /// Reads the number of tokens that a convolution sees.
    pub(crate) fn kernel(&self, key: &str, default: usize) -> Result<usize> {
        let size = self.usize_or(key, default)?;
        ensure!((2..=1024).contains(&size), "`{key}` is {size}; supported are 2 to 1024");
        Ok(size)
    }

    /// Reads a number of heads or a size that is above 0.
    pub(crate) fn heads_or(&self, key: &str, default: usize) -> Result<usize> {
        if self.get(key).is_none() { Ok(default) } else { self.heads(key) }
    }
}
