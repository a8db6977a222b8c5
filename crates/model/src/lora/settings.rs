//! Settings of an adapter.

use std::path::PathBuf;

/// The setting `lora_rank` and its neighbours.
#[derive(Clone, Debug, Default)]
pub struct LoraSettings {
    /// The rank r. 0 means no adapter, unless `adapter_path` names one.
    pub rank: usize,
    pub alpha: f64,
    /// `all-linear`, names or regular expressions; see [`targets`](super::targets).
    pub target_modules: Vec<String>,
    pub exclude_modules: Vec<String>,
    /// An adapter in PEFT's layout to start from.
    pub adapter_path: Option<PathBuf>,
    /// The config section of these keys, for error messages.
    pub group: &'static str,
}
