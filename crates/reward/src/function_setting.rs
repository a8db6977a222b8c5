//! Settings of reward functions, which `reward.function_kwargs` can change.

/// A numeric setting that a function reads by [`ScoreInput::setting`](super::ScoreInput::setting).
#[derive(Clone, Copy, Debug)]
pub struct FunctionSetting {
    pub name: &'static str,
    /// Default value; `None` if the setting is required.
    pub default: Option<f64>,
    pub takes: Takes,
}

/// Values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Number,
    /// Integers from this minimum.
    Count(u32),
    /// True and false, stored as 1 and 0.
    Flag,
}

/// Setting of functions with a [tag](super::Function::opens): true if the prompt ends with the tag, so that responses begin after
/// it.
pub(crate) const PREFILLED: &[FunctionSetting] = &[FunctionSetting { name: "prefilled", default: Some(0.0), takes: Takes::Flag }];
