//! The update of one parameter, and the state that it keeps.

use std::ops::Range;

use burn::tensor::{Device, Tensor};

use burnish_model::ops::{tensor_from_vec, to_host};

/// A parameter that is updated: its name in the network, and its shape, [out, in] for a matrix.
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

/// What an update knows beside the parameter.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The number of the update, from 1.
    pub number: u64,
    pub lr: f64,
    /// The factor on every gradient, which clips it.
    pub grad_scale: f64,
}

/// The numbers of a state tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    F32,
    U8,
}

/// A state tensor that an optimizer keeps of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its name in torch's state dict, such as `exp_avg`.
    pub kind: &'static str,
    pub size: usize,
    pub form: Form,
    /// The elements of the parameter that share one number, where the parameter can be updated in pieces.
    pub per: usize,
}

impl Slot {
    /// Returns a slot of f32 numbers.
    pub fn f32(kind: &'static str, size: usize) -> Self {
        Self { kind, size, form: Form::F32, per: 1 }
    }

    /// Returns a slot of bytes.
    pub fn u8(kind: &'static str, size: usize) -> Self {
        Self { kind, size, form: Form::U8, per: 1 }
    }

    /// Returns the slot, each number of which is about so many elements of the parameter.
    pub fn for_each(self, per: usize) -> Self {
        Self { per, ..self }
    }

    /// Returns the numbers that belong to a piece of a parameter of `size` elements.
    pub fn of(self, piece: &Range<usize>, size: usize) -> Range<usize> {
        // The last number may be about fewer elements than the others, or the rule one that updates parameters as a whole.
        let number = |element: usize| if element == size { self.size } else { element / self.per };
        number(piece.start)..number(piece.end)
    }

    /// True if an optimizer may have left this number in the slot: a finite one, and none below 0 in a mean of squares (in torch's
    /// names `sq`) or in the scale of a block, which is its largest absolute value.
    pub fn may_hold(self, number: f32) -> bool {
        let is_positive = self.kind.contains("_sq") || self.kind.starts_with("absmax");
        number.is_finite() && (number >= 0.0 || !is_positive)
    }

    pub fn bytes(self) -> usize {
        self.bytes_of(self.size)
    }

    /// Returns the bytes of so many numbers.
    pub fn bytes_of(self, numbers: usize) -> usize {
        numbers * if self.form == Form::F32 { 4 } else { 1 }
    }
}

/// A state tensor.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are tensors")]
pub enum Stored {
    /// Numbers on the device.
    Numbers(Tensor<1>),
    /// Numbers in the memory of the process.
    Host(Vec<f32>),
    /// Codes in the memory of the process.
    Codes(Vec<u8>),
}

impl Stored {
    /// Returns how many numbers there are.
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

    /// Returns the tensor of a file's values.
    pub fn restored(form: Form, values: Vec<f32>, device: &Device) -> Self {
        match form {
            Form::F32 => {
                let size = values.len();
                Self::Numbers(tensor_from_vec(values, [size], device))
            }
            Form::U8 => Self::Codes(values.into_iter().map(|value| value as u8).collect()),
        }
    }

    /// Returns the codes; other values are cut to bytes.
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

/// The state of one parameter, in the order of its slots.
pub type State = Vec<Stored>;

/// Returns the tensors of a state; before the first update, `first`.
///
/// # Panics
/// If a state has another number of tensors than its rule has slots.
pub fn tensors<const N: usize>(state: Option<State>, device: &Device, first: impl FnOnce() -> [Tensor<1>; N]) -> [Tensor<1>; N] {
    let Some(state) = state else { return first() };
    let tensors: Vec<_> = state.into_iter().map(|stored| stored.numbers(device)).collect();
    tensors.try_into().expect("a state has a tensor for each slot of its rule")
}

/// Returns a state of these tensors.
pub fn state<const N: usize>(tensors: [Tensor<1>; N]) -> State {
    tensors.map(Stored::Numbers).into()
}

/// A parameter, and what an update of it takes.
#[derive(Clone, Debug)]
pub struct Trained<'a> {
    pub parameter: Parameter<'a>,
    pub weight: Tensor<1>,
    pub gradient: Tensor<1>,
    pub state: Option<State>,
}

/// An optimizer's update of parameters.
pub trait Rule: Send + Sync {
    /// Returns the state tensors that are kept of a parameter.
    fn slots(&self, parameter: Parameter) -> Vec<Slot>;

    /// True if pieces of the parameter that begin at multiples of 64 Ki elements are updated as they are within the whole. Several
    /// ranks then share the parameter, and the numbers of each slot must be about [`Slot::per`] elements.
    fn splits(&self, _: Parameter) -> bool {
        false
    }

    /// True if the update of an element depends on which others are in its tensor, and where. It is then the tensor of the model's files,
    /// which other libraries have.
    fn sees_tensors(&self) -> bool {
        false
    }

    /// Updates a parameter: returns its weights and its state. `weight` and `gradient` are flat and row-major; `state` is `None`
    /// before the first update. All three may be of a piece, where the rule [`splits`](Self::splits) the parameter; `parameter` is
    /// the whole.
    fn update(
        &self,
        step: Step,
        parameter: Parameter,
        weight: Tensor<1>,
        gradient: Tensor<1>,
        state: Option<State>,
    ) -> (Tensor<1>, State);

    /// [`update`](Self::update)s parameters, and returns their weights and states in the same order: one by one, unless the rule
    /// has something quicker, such as a kernel that takes many.
    fn update_together(&self, step: Step, all: Vec<Trained>) -> Vec<(Tensor<1>, State)> {
        let update = |t: Trained| self.update(step, t.parameter, t.weight, t.gradient, t.state);
        all.into_iter().map(update).collect()
    }
}
