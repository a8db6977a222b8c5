//! The LoRA keys of every trained model, and the keys of weights in 4 bits, which only adapters train.

use super::types::{Location, ModelInit, OneOrMany};
use crate::Report;

/// The LoRA keys of a group.
#[derive(Clone, Copy, Debug)]
pub struct LoraKeys<'a> {
    pub group: &'static str,
    /// The dotted keys that describe a new adapter.
    pub new_adapter_keys: [&'static str; 3],
    /// The dotted key of `double_quant`.
    pub double_quant_key: &'static str,
    pub load_in_4bit: bool,
    pub double_quant: bool,
    pub rank: usize,
    pub alpha: f64,
    pub target_modules: &'a OneOrMany<String>,
    pub exclude_modules: Option<&'a OneOrMany<String>>,
    pub adapter_path: Option<&'a Location>,
}

/// Defines `lora()` for a group with these keys.
macro_rules! lora_keys {
    ($config:ty, $group:literal) => {
        impl $config {
            /// Returns the LoRA keys of the group.
            pub fn lora(&self) -> $crate::schema::LoraKeys<'_> {
                $crate::schema::LoraKeys {
                    group: $group,
                    new_adapter_keys: [
                        concat!($group, ".lora_alpha"),
                        concat!($group, ".target_modules"),
                        concat!($group, ".exclude_modules"),
                    ],
                    double_quant_key: concat!($group, ".bnb_4bit_use_double_quant"),
                    load_in_4bit: self.load_in_4bit,
                    double_quant: self.bnb_4bit_use_double_quant,
                    rank: self.lora_rank,
                    alpha: self.lora_alpha,
                    target_modules: &self.target_modules,
                    exclude_modules: self.exclude_modules.as_ref(),
                    adapter_path: self.lora_adapter_path.as_ref(),
                }
            }
        }
    };
}
pub(super) use lora_keys;

impl LoraKeys<'_> {
    /// True if the model gets an adapter.
    pub fn is_on(&self) -> bool {
        self.rank > 0 || self.adapter_path.is_some()
    }

    /// Reports impossible settings of adapters and of weights in 4 bits.
    pub(super) fn validate(&self, init: ModelInit, report: &mut Report) {
        let [alpha, ..] = self.new_adapter_keys;
        if self.load_in_4bit {
            self.validate_4bit(report);
        }
        if self.rank > 0 && self.alpha == 0.0 {
            report.wrong(alpha, format!("`{alpha}` must be above 0, not 0, or the adapter changes nothing"), "");
        }
        if init == ModelInit::Random && self.is_on() {
            let key = format!("{}.lora_rank", self.group);
            let message = format!("LoRA adapts a pretrained model, but `{}.init` is random", self.group);
            report.wrong(&key, message, format!("write {}.init=pretrained, or {key}=0", self.group));
        }
    }

    fn validate_4bit(&self, report: &mut Report) {
        let (group, key) = (self.group, format!("{}.load_in_4bit", self.group));
        if !self.is_on() {
            let message =
                format!("`{key}` is true, but `{group}.lora_rank` is 0: weights in 4 bits cannot be trained, only adapters");
            report.wrong(&key, message, format!("write {group}.lora_rank=16, or {key}=false"));
        }
    }
}
