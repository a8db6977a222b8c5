//! The format of a quantised model, as config.json names it.

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

/// The matrices of all linear layers except the head are held in NF4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourBit {
    /// True if the scales of blocks are in 8 bits (`bnb_4bit_use_double_quant`).
    pub double_quant: bool,
}

impl FourBit {
    /// Returns the settings as transformers writes them to `quantization_config`.
    pub fn to_json(self) -> Value {
        json!({
            "quant_method": "bitsandbytes",
            "load_in_4bit": true,
            "bnb_4bit_quant_type": "nf4",
            "bnb_4bit_use_double_quant": self.double_quant,
            "bnb_4bit_compute_dtype": "float32",
        })
    }

    /// Reads the `quantization_config` of a config.json; `None` if it is of another method than bitsandbytes.
    ///
    /// # Errors
    /// If it names a format of bitsandbytes other than NF4.
    pub(crate) fn of_json(config: &Map<String, Value>) -> Result<Option<Self>> {
        if config.get("quant_method").and_then(Value::as_str) != Some("bitsandbytes") {
            return Ok(None);
        }
        let is = |key: &str| config.get(key).and_then(Value::as_bool).unwrap_or(false);
        let kind = config.get("bnb_4bit_quant_type").and_then(Value::as_str).unwrap_or("fp4");
        ensure!(
            is("load_in_4bit") && kind == "nf4",
            "of bitsandbytes' formats only 4 bits with bnb_4bit_quant_type=nf4 are read"
        );
        Ok(Some(Self { double_quant: is("bnb_4bit_use_double_quant") }))
    }
}
