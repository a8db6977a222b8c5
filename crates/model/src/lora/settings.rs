//! Settings of an adapter.

use std::path::PathBuf;

/// The settings `lora_rank` and the keys beside it.
#[derive(Clone, Debug, Default)]
pub struct LoraSettings {
    /// The rank r; 0 for no adapter, unless `adapter_path` has one.
    pub rank: usize,
    pub alpha: f64,
    /// `all-linear`, names or regular expressions; see [`targets`](super::targets).
    pub target_modules: Vec<String>,
    pub exclude_modules: Vec<String>,
    /// An adapter in PEFT's layout to start from.
    pub adapter_path: Option<PathBuf>,
    /// The group of these keys, for error messages.
    pub group: &'static str,
}
