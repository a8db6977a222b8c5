//! The numbers that `reward.function_kwargs` sets of a reward function.

/// A number that a function reads by [`ScoreInput::setting`](super::ScoreInput::setting).
#[derive(Clone, Copy, Debug)]
pub struct FunctionSetting {
    pub name: &'static str,
    /// The default; `None` if the setting is required.
    pub default: Option<f64>,
    pub takes: Takes,
}

/// The values that a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Number,
    /// Integers from this one on.
    Count(u32),
    /// True and false, which are 1 and 0.
    Flag,
}

/// The setting of functions with a [tag](super::Function::opens): the prompt ends with the tag, so that responses begin behind it.
pub const PREFILLED: &[FunctionSetting] = &[FunctionSetting { name: "prefilled", default: Some(0.0), takes: Takes::Flag }];
