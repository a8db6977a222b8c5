//! EXAONE 4 (`Exaone4ForCausalLM`): norms behind attention and MLP, normalised queries and keys. If some layers have a window,
//! the others do not rotate.

use anyhow::ensure;

use super::Family;
use crate::config::{DecoderConfig, QkNorm, Residual};
use crate::hf_reader::HfReader;

pub(super) const FAMILY: Family = Family {
    model_type: "exaone4",
    class: "Exaone4",
    doc: "EXAONE 4: norms behind attention and MLP, normalised queries and keys, layers without a window not rotating",
    read: |config| {
        let common = config.llama_like(config.usize_or("num_key_value_heads", 32)?)?;
        let layers = common.num_hidden_layers;
        let has_window = config.window_or(Some(4096))?.is_some();
        // Files with `layer_types` may have a text here, such as LLLG.
        let pattern = match config.get("layer_types").is_some() || !has_window {
            true => {
                config.unused(&["sliding_window_pattern"]);
                1
            }
            false => config.usize_or("sliding_window_pattern", 4)?,
        };
        ensure!(pattern > 0, "`sliding_window_pattern` must be at least 1");
        let windows = config.windows(layers, HfReader::is_inside(pattern))?;
        Ok(DecoderConfig {
            residual: Residual::Behind,
            norm_eps: config.f64_or("rms_norm_eps", 1e-5)?,
            qk_norm: QkNorm::PerHead,
            rotates: windows.iter().map(|window| !has_window || window.is_some()).collect(),
            windows,
            ..common
        })
    },
};
