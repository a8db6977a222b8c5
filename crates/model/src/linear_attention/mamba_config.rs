//! Reads the shape of layers of Mamba-2 from config.json.

use anyhow::{Result, bail, ensure};

use super::recurrent_config::{MambaNorm, MambaShape};
use crate::hf_reader::HfReader;
use crate::ops::ScanShape;

impl HfReader<'_> {
    /// Reads the keys of Mamba-2 that families share, for layers of `values` outputs of all heads. `inner` names the keys that give
    /// this number. Callers change the fields that differ.
    pub(crate) fn mamba(&self, values: usize, inner: &str) -> Result<MambaShape> {
        // The result does not depend on the rows of a chunk.
        self.unused(&["mamba_chunk_size"]);
        let heads = self.heads_or("mamba_n_heads", 128)?;
        let head_dim = match self.get("mamba_d_head") {
            Some(auto) if auto == "auto" => values / heads,
            _ => self.heads_or("mamba_d_head", values / heads)?,
        };
        ensure!(
            heads.checked_mul(head_dim) == Some(values),
            "`mamba_n_heads` {heads} times `mamba_d_head` {head_dim} must be {inner}, {values}"
        );
        let (groups, state_dim) = (self.heads_or("mamba_n_groups", 1)?, self.heads_or("mamba_d_state", 256)?);
        ensure!(heads.is_multiple_of(groups), "`mamba_n_heads` {heads} must be a multiple of `mamba_n_groups` {groups}");
        let fits = |a: usize| state_dim.checked_mul(a).is_some_and(|size| size <= 1 << 40);
        ensure!(fits(values) && fits(groups), "`mamba_d_state` {state_dim} is too large");
        let bias = self.bool_or("mamba_proj_bias", false)?;
        Ok(MambaShape {
            scan: ScanShape { heads, head_dim, groups, state_dim, limits: self.time_steps()? },
            kernel: self.kernel("mamba_d_conv", 4)?,
            conv_bias: self.bool_or("mamba_conv_bias", true)?,
            bias: [bias; 2],
            norm: MambaNorm::BehindGate,
            factors: [1.0; 5],
        })
    }

    /// Reads `mamba_expand` times the hidden size.
    pub(crate) fn expanded(&self, hidden: usize) -> Result<usize> {
        let expand = self.heads_or("mamba_expand", 2)?;
        match expand.checked_mul(hidden).filter(|values| *values <= 1 << 40) {
            Some(values) => Ok(values),
            None => bail!("`mamba_expand` {expand} times the hidden size {hidden} is too large"),
        }
    }

    /// Reads the smallest and the largest time step. transformers 5 writes infinity as `{"__float__": "Infinity"}`.
    fn time_steps(&self) -> Result<[f32; 2]> {
        let Some(value) = self.get("time_step_limit") else { return Ok([0.0, f32::INFINITY]) };
        let number = |item: &serde_json::Value| match item.get("__float__").unwrap_or(item).as_str() {
            Some("Infinity") => Some(f32::INFINITY),
            Some(_) => None,
            None => item.as_f64().map(|number| number as f32),
        };
        let numbers = value.as_array().and_then(|items| items.iter().map(number).collect::<Option<Vec<f32>>>());
        match numbers.as_deref() {
            Some([min, max]) if 0.0 <= *min && min <= max => Ok([*min, *max]),
            _ => bail!("`time_step_limit` must be the smallest and the largest time step, as [0.0, 1.0], not {value}"),
        }
    }
}
