//! Rotary frequencies of a config.json (transformers `modeling_rope_utils.py`), with every scaling of the Llama family.

use std::f64::consts::TAU;

use anyhow::{Context, Result, bail, ensure};
use burn::tensor::{Device, Tensor};
use serde_json::{Map, Value};

use super::hf_reader::HfReader;
use super::ops::tensor_from_vec;

/// Base and scaling of the rotary embedding.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    pub theta: f64,
    /// The share of a head's dimensions that rotate, from the first.
    pub partial: f64,
    pub scaling: RopeScaling,
    /// Factor on cos and sin.
    pub attention_factor: f64,
    /// True if positions turn the other way (NanoChat).
    pub reversed: bool,
}

/// A factor on the rotated queries that grows with the position p, 1 + beta·ln(1 + ⌊p / original⌋) (Llama 4, Ministral 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryScaling {
    pub beta: f64,
    /// The number of positions before the factor grows for the first time.
    pub original: usize,
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
        original: f64,
    },
    /// YaRN (Peng et al. 2023, <https://arxiv.org/abs/2309.00071>): dimensions that turn often are kept, those that turn rarely
    /// are divided by `factor`, with a ramp over the dimensions `low` to `high` in between.
    Yarn {
        factor: f64,
        low: f64,
        high: f64,
    },
    /// LongRoPE (Ding et al. 2024, <https://arxiv.org/abs/2402.13753>): one divisor per frequency, for sequences up to the
    /// original length. Longer sequences would use other divisors, and a token's rotation would change as its sequence grows.
    LongRope {
        divisors: Vec<f64>,
        original: usize,
    },
    /// A share of the pairs of a head rotates, by frequencies for the whole head divided by `factor` (Gemma 4).
    Proportional {
        share: f64,
        factor: f64,
    },
}

/// Numeric keys of `rope_parameters` and `rope_scaling`, of all rope types.
const NUMBERS: &[&str] = &[
    "rope_theta",
    "partial_rotary_factor",
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "llama_4_scaling_beta",
    "max_position_embeddings",
];
/// The `mrope` keys arrange the positions of images; those of text are the same in all their sections.
const OTHERS: &[&str] = &["rope_type", "type", "truncate", "short_factor", "long_factor", "mrope_section", "mrope_interleaved"];

/// The types of layers with separate rope parameters.
const LAYER_TYPES: [&str; 2] = ["full_attention", "sliding_attention"];

impl RopeConfig {
    /// Reads `rope_parameters {rope_type, rope_theta, partial_rotary_factor, …}` of transformers 5, or `rope_theta` and
    /// `rope_scaling {rope_type | type, …}` of transformers 4. `theta` and `partial` are the family's names for base and rotated
    /// share in transformers 4.
    ///
    /// # Errors
    /// If parameters are unknown, of the wrong type, missing, or contradict each other.
    pub fn read(config: &HfReader, theta: &str, partial: &str, default_partial: f64) -> Result<Self> {
        let (outer_theta, outer_partial) = (config.f64_or(theta, 10_000.0)?, config.f64_or(partial, default_partial)?);
        Self::of(&Nested::read(config)?, config, outer_theta, outer_partial)
    }

    /// Reads the rotation of whole heads, with this default base.
    ///
    /// # Errors
    /// Like [`read`](Self::read), or if only a share of each head rotates.
    pub(crate) fn read_whole(config: &HfReader, default_theta: f64) -> Result<Self> {
        let outer_partial = config.f64_or("partial_rotary_factor", 1.0)?;
        Self::of(&Nested::read(config)?, config, config.f64_or("rope_theta", default_theta)?, outer_partial)?.whole()
    }

    /// Reads the rotation of a part of each head: `dims` dimensions, which all rotate.
    ///
    /// # Errors
    /// Like [`read_whole`](Self::read_whole).
    pub(crate) fn read_part(config: &HfReader, dims: usize) -> Result<Self> {
        let (theta, partial) = (config.f64_or("rope_theta", 10_000.0)?, config.f64_or("partial_rotary_factor", 1.0)?);
        Self::of_head(&Nested::read(config)?, config, theta, partial, || Ok(dims))?.whole()
    }

    /// Reads the factor on queries, and on keys too, of a scaling with `mscale_all_dim` (DeepSeek); 1 without it.
    ///
    /// # Errors
    /// If the `factor` of the scaling is missing.
    pub(crate) fn magnitude(config: &HfReader) -> Result<f64> {
        let nested = Nested::read(config)?;
        match nested.nonzero("mscale_all_dim").filter(|_| nested.kind() != "default") {
            Some(all) => Ok(magnitude(nested.need("factor")?, all)),
            None => Ok(1.0),
        }
    }

    fn whole(self) -> Result<Self> {
        ensure!(
            self.partial == 1.0,
            "`partial_rotary_factor: {}` is not supported: in this family whole heads rotate, and transformers ignores the factor or \
             fails; remove it if the model was trained with whole heads",
            self.partial
        );
        Ok(self)
    }

    /// Reads the rotations of layers without and with a window. In transformers 5 `rope_parameters` has an object for each; in
    /// transformers 4 `rope_theta` and `rope_scaling` are those of layers without a window. `full` is the default base of layers
    /// without a window. `sliding` is the base of the others: its key in transformers 4, if there is one, and its default.
    pub(crate) fn read_by_layer_type(config: &HfReader, full: f64, sliding: (Option<&str>, f64)) -> Result<[Self; 2]> {
        let outer_full = config.f64_or("rope_theta", full)?;
        let outer_sliding = sliding.0.map_or(Ok(sliding.1), |key| config.f64_or(key, sliding.1))?;
        let Some(parameters) = config.get("rope_parameters") else {
            return Ok([
                Self::of(&Nested::read(config)?, config, outer_full, 1.0)?.whole()?,
                Self::of(&Nested(None), config, outer_sliding, 1.0)?,
            ]);
        };
        let by_type = parameters.as_object().filter(|map| map.keys().all(|key| LAYER_TYPES.contains(&key.as_str())));
        let by_type = by_type
            .with_context(|| format!("`rope_parameters` must have full_attention and sliding_attention, not {parameters}"))?;
        config.only("rope_scaling", Value::Null)?;
        let [full, sliding] = LAYER_TYPES.map(|kind| Nested::of(by_type.get(kind).filter(|value| !value.is_null())));
        let (full, sliding) = (full?, sliding?);
        if let Some(truncate) = [&full, &sliding].iter().find_map(|nested| nested.value("truncate")) {
            // transformers 5 reads it next to the layer types, where it cannot be.
            ensure!(
                truncate == &Value::Bool(true),
                "rope parameters: `truncate: {truncate}` is not supported for one type of layers"
            );
        }
        Ok([Self::of(&full, config, outer_full, 1.0)?.whole()?, Self::of(&sliding, config, outer_sliding, 1.0)?.whole()?])
    }

    fn of(nested: &Nested, config: &HfReader, outer_theta: f64, outer_partial: f64) -> Result<Self> {
        Self::of_head(nested, config, outer_theta, outer_partial, || config.head_dim())
    }

    /// Reads a rotation of heads with `dims` dimensions.
    fn of_head(
        nested: &Nested,
        config: &HfReader,
        outer_theta: f64,
        outer_partial: f64,
        dims: impl Fn() -> Result<usize>,
    ) -> Result<Self> {
        let theta = nested.number("rope_theta").unwrap_or(outer_theta);
        let partial = nested.number("partial_rotary_factor").unwrap_or(outer_partial);
        let longest = config.f64_or("max_position_embeddings", 2048.0)?;
        let outer_original = config.f64_or("original_max_position_embeddings", longest)?;
        let original = nested.number("original_max_position_embeddings").unwrap_or(outer_original);
        if config.get("original_max_position_embeddings").is_some() && original != outer_original {
            bail!(
                "`original_max_position_embeddings` is {outer_original} outside the rope parameters and {original} in them; remove one"
            );
        }
        let factor = nested.number("factor").unwrap_or(longest / original);
        let whole = |share: f64| if nested.kind() == "proportional" { 1.0 } else { share };
        let (scaling, attention_factor) = match nested.kind() {
            // The base of `dynamic` grows only for sequences beyond max_position_embeddings, which are refused here.
            "default" | "dynamic" => (RopeScaling::Default, 1.0),
            "linear" => (RopeScaling::Linear { factor: nested.need("factor")? }, 1.0),
            "llama3" => {
                let scaling = RopeScaling::Llama3 {
                    factor: nested.need("factor")?,
                    low_freq_factor: nested.need("low_freq_factor")?,
                    high_freq_factor: nested.need("high_freq_factor")?,
                    original,
                };
                (scaling, 1.0)
            }
            "yarn" => nested.yarn(factor, theta, partial * dims()? as f64, original)?,
            // Early files of Phi-3 call it `su`.
            "longrope" | "su" => nested.long_rope(factor, partial * dims()? as f64, original)?,
            "proportional" => {
                ensure!(partial > 0.0 && partial <= 1.0, "`partial_rotary_factor: {partial}` must be above 0, to 1");
                (RopeScaling::Proportional { share: partial, factor: nested.number("factor").unwrap_or(1.0) }, 1.0)
            }
            other => {
                bail!(
                    "rope type `{other}` is not supported; supported are default, linear, dynamic, yarn, longrope, llama3, \
                     proportional"
                )
            }
        };
        Ok(Self { theta, partial: whole(partial), scaling, attention_factor, reversed: false })
    }

    /// The longest allowed sequence, if the scaling sets one.
    pub fn longest(&self) -> Option<usize> {
        match &self.scaling {
            RopeScaling::LongRope { original, .. } => Some(*original),
            _ => None,
        }
    }

    /// The number of dimensions of a head that rotate.
    pub(crate) fn rotated(&self, head_dim: usize) -> usize {
        (head_dim as f64 * self.partial) as usize
    }

    /// The angular frequency of each rotating pair of a head of `head_dim`.
    pub fn inverse_frequencies(&self, head_dim: usize) -> Vec<f32> {
        let dims = self.rotated(head_dim);
        let base = (0..dims / 2).map(|i| (i, 1.0 / self.theta.powf(2.0 * i as f64 / dims as f64)));
        base.map(|(i, f)| match &self.scaling {
            RopeScaling::Default => f,
            RopeScaling::Linear { factor } => f / factor,
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original } => {
                let wavelength = TAU / f;
                // 1 below the short wavelengths, 0 above the long ones, linear between.
                let kept = ((original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0.0, 1.0);
                (1.0 - kept) * f / factor + kept * f
            }
            RopeScaling::Yarn { factor, low, high } => {
                let width = if low == high { 0.001 } else { high - low };
                let divided = ((i as f64 - low) / width).clamp(0.0, 1.0);
                divided * f / factor + (1.0 - divided) * f
            }
            RopeScaling::LongRope { divisors, .. } => f / divisors[i],
            RopeScaling::Proportional { share, factor } => match i < (share * head_dim as f64 / 2.0) as usize {
                // transformers rounds the power to f32 before it divides; the largest angles show the difference.
                true => f64::from(1.0 / (1.0 / f) as f32) / factor,
                false => 0.0,
            },
        })
        .map(|f| if self.reversed { -f as f32 } else { f as f32 })
        .collect()
    }
}

impl QueryScaling {
    /// Reads `llama_4_scaling_beta` of the rope parameters.
    ///
    /// # Errors
    /// If it is missing, or the length from which the factor grows is.
    pub(crate) fn read(config: &HfReader) -> Result<Self> {
        let nested = Nested::read(config)?;
        let original = nested.need("original_max_position_embeddings")?;
        ensure!(original >= 1.0, "rope parameters: `original_max_position_embeddings` must be at least 1, not {original}");
        Ok(Self { beta: nested.need("llama_4_scaling_beta")?, original: original as usize })
    }

    /// The factor of each position; `None` if all are 1.
    pub(crate) fn factors(&self, positions: &[usize]) -> Option<Vec<f32>> {
        let factor = |p: &usize| (1.0 + self.beta * ((1 + p / self.original) as f64).ln()) as f32;
        positions.iter().any(|p| *p >= self.original).then(|| positions.iter().map(factor).collect())
    }
}

/// The object `rope_parameters` or `rope_scaling`, if config.json has it.
struct Nested<'a>(Option<&'a Map<String, Value>>);

impl<'a> Nested<'a> {
    fn read(config: &'a HfReader) -> Result<Self> {
        let nested = match (config.get("rope_parameters"), config.get("rope_scaling")) {
            (Some(new), Some(old)) if new != old => {
                bail!("`rope_parameters` and `rope_scaling` differ; remove one of them")
            }
            (value, None) | (None, value) | (value, _) => value,
        };
        Self::of(nested)
    }

    /// Checks the names and types of the parameters.
    fn of(nested: Option<&'a Value>) -> Result<Self> {
        let object =
            |value: &'a Value| value.as_object().with_context(|| format!("rope parameters must be an object, not {value}"));
        let nested = nested.map(object).transpose()?;
        let known = |key: &str| NUMBERS.contains(&key) || OTHERS.contains(&key);
        if let Some(key) = nested.and_then(|map| map.keys().find(|key| !known(key))) {
            bail!("rope parameters: `{key}` is not supported");
        }
        let nested = Self(nested);
        for key in OTHERS.iter().chain(NUMBERS) {
            let fits: fn(&Value) -> bool = match *key {
                "rope_type" | "type" => Value::is_string,
                "truncate" | "mrope_interleaved" => Value::is_boolean,
                "short_factor" | "long_factor" | "mrope_section" => Value::is_array,
                _ => Value::is_number,
            };
            if let Some(value) = nested.value(key).filter(|value| !fits(value)) {
                bail!("rope parameters: `{key}: {value}` is of the wrong type");
            }
        }
        Ok(nested)
    }

    /// A parameter that is neither missing nor null.
    fn value(&self, key: &str) -> Option<&'a Value> {
        self.0.and_then(|map| map.get(key)).filter(|value| !value.is_null())
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(Value::as_f64)
    }

    /// Reads a number whose value 0 means its default, as in transformers.
    fn nonzero(&self, key: &str) -> Option<f64> {
        self.number(key).filter(|x| *x != 0.0)
    }

    fn need(&self, key: &str) -> Result<f64> {
        self.number(key).with_context(|| format!("rope parameters: `{key}` is missing"))
    }

    fn kind(&self) -> &'a str {
        self.value("rope_type").or(self.value("type")).and_then(Value::as_str).unwrap_or("default")
    }

    /// YaRN and its attention factor. `dims` is the number of rotated dimensions of a head, not yet rounded; `original` is the
    /// sequence length before the extension.
    fn yarn(&self, factor: f64, theta: f64, dims: f64, original: f64) -> Result<(RopeScaling, f64)> {
        // null means the ratio of the lengths, as in transformers.
        if self.0.is_some_and(|map| !map.contains_key("factor")) {
            bail!("rope parameters: `factor` is missing");
        }
        let attention_factor =
            self.number("attention_factor").unwrap_or_else(|| match (self.nonzero("mscale"), self.nonzero("mscale_all_dim")) {
                (Some(m), Some(all)) => magnitude(factor, m) / magnitude(factor, all),
                _ => magnitude(factor, 1.0),
            });
        // The dimension, as a share of the rotated ones, that makes `turns` turns within the original length.
        let turning = |turns: f64| (original / (turns * TAU)).ln() / (2.0 * theta.ln());
        let (fast, slow) = (self.nonzero("beta_fast").unwrap_or(32.0), self.nonzero("beta_slow").unwrap_or(1.0));
        let (mut low, mut high) = (turning(fast) * dims.floor(), turning(slow) * dims.floor());
        if self.value("truncate").and_then(Value::as_bool).unwrap_or(true) {
            (low, high) = (low.floor(), high.ceil());
        }
        Ok((RopeScaling::Yarn { factor, low: low.max(0.0), high: high.min(dims.floor() - 1.0) }, attention_factor))
    }

    /// LongRoPE and its attention factor; see [`Self::yarn`].
    fn long_rope(&self, factor: f64, dims: f64, original: f64) -> Result<(RopeScaling, f64)> {
        let attention_factor = self.number("attention_factor").unwrap_or(match factor <= 1.0 {
            true => 1.0,
            false => (1.0 + factor.ln() / original.ln()).sqrt(),
        });
        let list = self.value("short_factor").and_then(Value::as_array);
        let list = list.context("rope parameters: `short_factor` is missing")?;
        let divisors: Option<Vec<f64>> = list.iter().map(Value::as_f64).collect();
        let divisors = divisors.context("rope parameters: `short_factor` must be a list of numbers")?;
        let expected = dims as usize / 2;
        if divisors.len() != expected {
            bail!("rope parameters: `short_factor` has {} values, the heads need {expected}", divisors.len());
        }
        Ok((RopeScaling::LongRope { divisors, original: original as usize }, attention_factor))
    }
}

/// YaRN's factor on queries and keys for positions divided by `scale`, with a weight of its growth.
fn magnitude(scale: f64, weight: f64) -> f64 {
    if scale <= 1.0 { 1.0 } else { 0.1 * weight * scale.ln() + 1.0 }
}

/// cos and sin [positions, frequencies], in f32 as transformers computes them.
pub(crate) fn cos_sin(frequencies: &[f32], factor: f32, positions: &[usize], device: &Device) -> (Tensor<2>, Tensor<2>) {
    let shape = [positions.len(), frequencies.len()];
    let angles: Vec<f32> = positions.iter().flat_map(|&p| frequencies.iter().map(move |f| p as f32 * f)).collect();
    let table = |f: fn(f32) -> f32| tensor_from_vec(angles.iter().map(|&a| f(a) * factor).collect(), shape, device);
    (table(f32::cos), table(f32::sin))
}
