//! Rotary frequencies of a config.json (transformers `modeling_rope_utils.py`): default, linear and llama3 scaling.

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, Tensor};
use serde_json::Value;

use super::config::HfConfig;
use super::ops::tensor_from_vec;

/// Base and scaling of the rotary embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    pub theta: f64,
    pub scaling: RopeScaling,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    Default,
    /// Positions divided by `factor`.
    Linear {
        factor: f64,
    },
    /// Llama 3.1: long wavelengths divided by `factor`, short ones kept, a ramp between.
    Llama3 {
        factor: f64,
        low_freq_factor: f64,
        high_freq_factor: f64,
        original_max_position_embeddings: f64,
    },
}

impl RopeConfig {
    /// transformers 5: `rope_parameters {rope_type, rope_theta, …}`; 4: `rope_theta` and `rope_scaling {rope_type | type, …}`.
    pub fn read(config: &HfConfig) -> Result<Self> {
        let nested = ["rope_parameters", "rope_scaling"].iter().find_map(|key| config.json.get(*key).and_then(Value::as_object));
        let number = |key: &str| nested.and_then(|m| m.get(key)).and_then(Value::as_f64);
        let need = |key: &str| number(key).with_context(|| format!("rope parameters: `{key}` is missing"));
        let theta = number("rope_theta").map_or_else(|| config.f64_or("rope_theta", 10_000.0), Ok)?;
        let kind = nested.and_then(|m| m.get("rope_type").or(m.get("type"))).and_then(Value::as_str).unwrap_or("default");
        let scaling = match kind {
            "default" => RopeScaling::Default,
            "linear" => RopeScaling::Linear { factor: need("factor")? },
            "llama3" => RopeScaling::Llama3 {
                factor: need("factor")?,
                low_freq_factor: need("low_freq_factor")?,
                high_freq_factor: need("high_freq_factor")?,
                original_max_position_embeddings: need("original_max_position_embeddings")?,
            },
            other => bail!("rope type `{other}` is not supported; supported are default, linear, llama3"),
        };
        Ok(Self { theta, scaling })
    }

    /// Angular frequency of each pair of a head of `head_dim`.
    pub fn inverse_frequencies(&self, head_dim: usize) -> Vec<f32> {
        let base = (0..head_dim / 2).map(|i| 1.0 / self.theta.powf(2.0 * i as f64 / head_dim as f64));
        base.map(|f| match self.scaling {
            RopeScaling::Default => f,
            RopeScaling::Linear { factor } => f / factor,
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings: original } => {
                let wavelength = std::f64::consts::TAU / f;
                // 1 below the short wavelengths, 0 above the long ones, linear between.
                let kept = ((original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0.0, 1.0);
                (1.0 - kept) * f / factor + kept * f
            }
        })
        .map(|f| f as f32)
        .collect()
    }
}

/// cos and sin [positions, head_dim / 2], in f32 as transformers computes them.
pub fn cos_sin(frequencies: &[f32], positions: &[usize], device: &Device) -> (Tensor<2>, Tensor<2>) {
    let shape = [positions.len(), frequencies.len()];
    let angles: Vec<f32> = positions.iter().flat_map(|&p| frequencies.iter().map(move |f| p as f32 * f)).collect();
    let table = |f: fn(f32) -> f32| tensor_from_vec(angles.iter().map(|&a| f(a)).collect(), shape, device);
    (table(f32::cos), table(f32::sin))
}
