//! The update of one parameter, and its state.

use std::ops::Range;

use burn::tensor::{Device, Tensor};

use burnish_model::ops::{tensor_from_vec, to_host};

/// A parameter to be updated: its name in the network, and its shape, [out, in] for a matrix.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    pub name: &'a str,
    pub shape: &'a [usize],
}

impl Parameter<'_> {
    pub fn size(self) -> usize {
        self.shape.iter().product()
    }
}

/// Inputs of an update other than the parameter.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Number of the update, from 1.
    pub number: u64,
    pub lr: f64,
    /// Factor on every gradient, which clips it.
    pub grad_scale: f64,
}

/// Dtype of a state tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateDtype {
    F32,
    U8,
}

/// A state tensor that an optimizer stores for a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Name in torch's state dict, such as `exp_avg`.
    pub kind: &'static str,
    pub size: usize,
    pub dtype: StateDtype,
    /// Elements of the parameter per element of the slot, if the parameter can be updated in pieces.
    pub per: usize,
}

impl Slot {
    /// Creates a slot of f32.
    pub fn f32(kind: &'static str, size: usize) -> Self {
        Self { kind, size, dtype: StateDtype::F32, per: 1 }
    }

    /// Creates a slot of bytes.
    pub fn u8(kind: &'static str, size: usize) -> Self {
        Self { kind, size, dtype: StateDtype::U8, per: 1 }
    }

    /// Returns the slot with one element per `per` elements of the parameter.
    pub fn for_each(self, per: usize) -> Self {
        Self { per, ..self }
    }

    /// Returns the range of elements that belongs to a piece of a parameter of `size` elements.
    pub(crate) fn range_of(self, piece: &Range<usize>, size: usize) -> Range<usize> {
        // The last element may cover fewer parameter elements than the others, or the rule may update parameters as a whole.
        let number = |element: usize| if element == size { self.size } else { element / self.per };
        number(piece.start)..number(piece.end)
    }

    /// Returns true if an optimizer can have left this value in the slot. It must be finite. Means of squares (in torch's names
    /// `sq`) and scales of blocks (their largest absolute value) must not be below 0.
    pub(crate) fn may_hold(self, number: f32) -> bool {
        let is_positive = self.kind.contains("_sq") || self.kind.starts_with("absmax");
        number.is_finite() && (number >= 0.0 || !is_positive)
    }

    pub fn bytes(self) -> usize {
        self.bytes_of(self.size)
    }

    /// Returns the bytes of this number of elements.
    pub fn bytes_of(self, numbers: usize) -> usize {
        numbers * if self.dtype == StateDtype::F32 { 4 } else { 1 }
    }
}

/// A state tensor.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are tensors")]
pub enum StoredTensor {
    /// Floats on the device.
    Numbers(Tensor<1>),
    /// Floats in host memory.
    Host(Vec<f32>),
    /// Codes in host memory.
    Codes(Vec<u8>),
}

impl StoredTensor {
    /// Returns the number of elements.
    pub fn count(&self) -> usize {
        match self {
            Self::Numbers(tensor) => tensor.dims()[0],
            Self::Host(values) => values.len(),
            Self::Codes(codes) => codes.len(),
        }
    }

    /// Returns the values, for a file.
    pub fn values(&self) -> Vec<f32> {
        match self {
            Self::Numbers(tensor) => to_host(tensor.clone()),
            Self::Host(values) => values.clone(),
            Self::Codes(codes) => codes.iter().map(|code| f32::from(*code)).collect(),
        }
    }

    /// Creates the tensor from a file's values.
    pub fn restored(dtype: StateDtype, values: Vec<f32>, device: &Device) -> Self {
        match dtype {
            StateDtype::F32 => {
                let size = values.len();
                Self::Numbers(tensor_from_vec(values, [size], device))
            }
            StateDtype::U8 => Self::Codes(values.into_iter().map(|value| value as u8).collect()),
        }
    }

    /// Returns the codes; other values are converted to bytes.
    pub fn codes(self) -> Vec<u8> {
        match self {
            Self::Codes(codes) => codes,
            other => other.values().into_iter().map(|value| value as u8).collect(),
        }
    }

    /// Returns the tensor on the device.
    pub fn numbers(self, device: &Device) -> Tensor<1> {
        match self {
            Self::Numbers(tensor) => tensor,
            other => {
                let values = other.values();
                let size = values.len();
                tensor_from_vec(values, [size], device)
            }
        }
    }
}

/// State of one parameter, in the order of its slots.
pub(crate) type ParameterState = Vec<StoredTensor>;

/// Returns the tensors of a state; `first` before the first update.
///
/// # Panics
/// If the number of tensors of a state differs from the number of slots of its rule.
pub(crate) fn tensors<const N: usize>(
    state: Option<ParameterState>,
    device: &Device,
    first: impl FnOnce() -> [Tensor<1>; N],
) -> [Tensor<1>; N] {
    let Some(state) = state else { return first() };
    let tensors: Vec<_> = state.into_iter().map(|stored| stored.numbers(device)).collect();
    tensors.try_into().expect("a state has a tensor for each slot of its rule")
}

/// Creates a state of these tensors.
pub(crate) fn state<const N: usize>(tensors: [Tensor<1>; N]) -> ParameterState {
    tensors.map(StoredTensor::Numbers).into()
}

/// A parameter, and the inputs of its update. If the rule [splits](Rule::splits) the parameter, all but `parameter` may be a
/// piece of it.
#[derive(Clone, Debug)]
pub struct TrainedParam<'a> {
    pub parameter: Parameter<'a>,
    /// Flat and row-major, like the gradient.
    pub weight: Tensor<1>,
    pub gradient: Tensor<1>,
    /// `None` before the first update.
    pub state: Option<ParameterState>,
}

/// The weights of a parameter after an update, and its state.
pub(crate) type UpdatedParam = (Tensor<1>, ParameterState);

/// An optimizer's update of parameters.
pub trait Rule: Send + Sync {
    /// Returns the state tensors that are stored for a parameter.
    fn slots(&self, parameter: Parameter) -> Vec<Slot>;

    /// Returns true if pieces of the parameter that begin at multiples of 64 Ki elements are updated exactly as within the whole.
    /// Several ranks then share the parameter, and each element of a slot must cover [`Slot::per`] elements.
    fn splits(&self, _: Parameter) -> bool {
        false
    }

    /// Returns true if the update of an element depends on the other elements of its tensor and their positions. The tensor is
    /// then the tensor of the model's files, which other libraries see.
    fn sees_tensors(&self) -> bool {
        false
    }

    /// Updates a parameter.
    fn update(&self, step: Step, trained: TrainedParam) -> UpdatedParam;

    /// Updates several parameters and returns them in the same order. Calls [`update`](Self::update) one by
    /// one, unless the rule has a faster way, such as a kernel for many parameters.
    fn update_together(&self, step: Step, all: Vec<TrainedParam>) -> Vec<UpdatedParam> {
        all.into_iter().map(|trained| self.update(step, trained)).collect()
    }
}
