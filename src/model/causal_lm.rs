//! A decoder on a device: loading, saving, and its forward passes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::config::{DecoderConfig, HfConfig};
use super::decoder::{Decoder, Pass};
use super::ops::{CacheView, attention, decode_attention};
use super::rope::cos_sin;
use super::weights::{WeightFiles, parameters, write_safetensors};
use crate::util::rng::Stream;

/// Where initial weights come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// model.safetensors of the folder.
    Pretrained,
    /// Normal(0, initializer_range) matrices, zero biases, unit norms, as transformers initialises; only config.json is read.
    Random { seed: u64 },
}

/// A causal language model of f32 parameters on one device.
#[derive(Clone)]
pub struct CausalLm {
    pub config: DecoderConfig,
    pub net: Decoder,
    /// The plain device of the parameters.
    pub device: Device,
    hf: std::sync::Arc<HfConfig>,
    frequencies: std::sync::Arc<Vec<f32>>,
}

impl CausalLm {
    /// Loads a Hugging Face folder without gradients; see [`CausalLm::trainable`].
    pub fn load(folder: &Path, init: Init, device: &Device) -> Result<Self> {
        let hf = HfConfig::read(folder)?;
        let config = hf.decoder().with_context(|| format!("{}", folder.display()))?;
        let net = match init {
            Init::Pretrained => WeightFiles::open(folder)?.build(&config, device)?,
            Init::Random { seed } => random(&config, seed, device)?,
        };
        let frequencies = config.rope.inverse_frequencies(config.head_dim).into();
        Ok(Self { config, net, device: device.clone(), hf: hf.into(), frequencies })
    }

    /// The same model with parameters that require gradients.
    pub fn trainable(mut self) -> Self {
        self.net = self.net.train();
        self
    }

    /// The same parameters, shared and not copied, without gradients: for sampling and reference passes.
    pub fn frozen(&self) -> Self {
        Self { net: self.net.valid(), ..self.clone() }
    }

    pub fn num_parameters(&self) -> usize {
        self.net.num_params()
    }

    /// Writes config.json and model.safetensors so that transformers loads the folder; returns the files written.
    pub fn save(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut json = self.hf.json.clone();
        let dtype_key = if json.contains_key("dtype") { "dtype" } else { "torch_dtype" };
        json.insert(dtype_key.to_owned(), "float32".into());
        let config = folder.join("config.json");
        std::fs::write(&config, serde_json::to_string_pretty(&json)? + "\n")
            .with_context(|| format!("cannot write {}", config.display()))?;
        let weights = folder.join("model.safetensors");
        write_safetensors(&weights, &parameters(&self.net))?;
        Ok(vec![config, weights])
    }

    /// Embeddings [ids, h] of a row of token ids, outside any graph.
    pub fn embed(&self, ids: &[u32]) -> Tensor<2> {
        self.net.model.embed_tokens.weight.val().inner().select(0, index(ids.iter().map(|&id| id as usize), &self.device))
    }

    /// Hidden states [batch · seq, h] of embedded sequences of equal width; shorter ones are padded on the right, which a
    /// causal model does not see. `keep` receives each layer's rotated keys and values [batch, seq, kv heads, d].
    pub fn hidden(
        &self,
        x: Tensor<2>,
        batch: usize,
        seq: usize,
        keep: &mut dyn FnMut(usize, &Tensor<4>, &Tensor<4>),
    ) -> Tensor<2> {
        let positions: Vec<usize> = (0..seq).collect();
        let (cos, sin) = cos_sin(&self.frequencies, &positions, &self.device);
        let pass = Pass { batch, seq, cos, sin, config: &self.config };
        self.net.forward(x, &pass, &mut |layer, q, k, v| {
            keep(layer, &k, &v);
            attention(q, k, v)
        })
    }

    /// Hidden states [rows, h] of one new token per sequence, whose keys and values are written to the cache first.
    /// `slots` and `positions` say where each row goes.
    pub fn decode(&self, ids: &[u32], slots: &[usize], positions: &[usize], cache: &mut KvCache) -> Tensor<2> {
        let rows = ids.len();
        let (cos, sin) = cos_sin(&self.frequencies, positions, &self.device);
        // One sequence whose "positions" are the rows: rotation is per row, everything else does not mix rows.
        let pass = Pass { batch: 1, seq: rows, cos, sin, config: &self.config };
        let lens: Vec<usize> = positions.iter().map(|p| p + 1).collect();
        let places: Vec<usize> = slots.iter().zip(positions).map(|(slot, p)| slot * cache.capacity + p).collect();
        let places = index(places.into_iter(), &self.device);
        self.net.forward(self.embed(ids), &pass, &mut |layer, q, k, v| {
            cache.write(layer, &places, k, v);
            let at = CacheView { capacity: cache.capacity, kv_heads: self.config.num_key_value_heads, slots, lens: &lens };
            let [_, _, heads, d] = q.dims();
            let (k, v) = &cache.layers[layer];
            decode_attention(q.reshape([rows, heads, d]), k, v, at).reshape([1, rows, heads, d])
        })
    }

    /// Logits [rows, vocab] of hidden states [rows, h].
    pub fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        hidden.matmul(self.net.head().val().inner().transpose())
    }
}

/// A preallocated key/value cache of `slots` sequences of up to `capacity` positions.
pub struct KvCache {
    pub capacity: usize,
    /// Per layer keys and values, [slots · capacity, kv heads · d].
    layers: Vec<(Tensor<2>, Tensor<2>)>,
}

impl KvCache {
    pub fn new(config: &DecoderConfig, slots: usize, capacity: usize, device: &Device) -> Self {
        let shape = [slots * capacity, config.num_key_value_heads * config.head_dim];
        let zeros = || Tensor::zeros(shape, device);
        Self { capacity, layers: (0..config.num_hidden_layers).map(|_| (zeros(), zeros())).collect() }
    }

    /// Writes rows of keys and values [.., kv heads, d] at `places` (slot · capacity + position).
    pub fn write(&mut self, layer: usize, places: &Tensor<1, Int>, k: Tensor<4>, v: Tensor<4>) {
        let (keys, values) = &mut self.layers[layer];
        for (cache, new) in [(keys, k), (values, v)] {
            let [b, s, heads, d] = new.dims();
            let new = new.reshape([b * s, heads * d]);
            cache.inplace(|c| c.select_assign(0, places.clone(), new, burn::tensor::IndexingUpdateOp::Assign));
        }
    }
}

/// Host indices as a tensor.
pub fn index(values: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.map(|v| v as i64).collect();
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), device)
}

fn random(config: &DecoderConfig, seed: u64, device: &Device) -> Result<Decoder> {
    let mut parameter = 0;
    Decoder::build(config, device, &mut |name, shape| {
        parameter += 1;
        let n: usize = shape.iter().product();
        let mut stream = Stream::new(seed, "init", &[parameter]);
        Ok(match (shape.len(), name.ends_with("bias")) {
            (2, _) => (0..n).map(|_| (stream.normal() * config.initializer_range) as f32).collect(),
            (_, true) => vec![0.0; n],
            (_, false) => vec![1.0; n],
        })
    })
}
