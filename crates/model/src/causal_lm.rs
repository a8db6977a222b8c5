//! A decoder on a device: loading, saving, and its forward passes.
//!
//! The methods of [`CausalLm`] are spread over these files:
//!
//! - here: load, save, switch between training and inference, hidden states of a packed batch;
//! - `decoding.rs`: prefill and decode with a KV cache, logits;
//! - `token_stats.rs`: per-token statistics and their backward pass, top-k tokens;
//! - `readout.rs`: head outputs at marked positions, and their backward pass;
//! - `labels.rs`: load a classifier; `scalar.rs`: values of a critic, scores of a reward model;
//! - `lora/attach.rs`: attach, read and remove an adapter;
//! - `ema.rs`: move the weights towards another model's;
//! - `fingerprint.rs`: a checksum of all parameters.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::tensor::{Device, FloatDType, Tensor};

use super::config::{DecoderConfig, HeadKind};
use super::decoder::{Decoder, Pass};
use super::experts::{RouterPass, RouterStats};
use super::hf_config::HfConfig;
use super::lora::AdapterInfo;
use super::low_precision_weights::LowPrecisionWeights;
use super::noise::EmbeddingNoise;
use super::ops::{Packed, cast, index, tensor_from_vec};
use super::rope::{RopeConfig, cos_sin};
use super::tensor_files::{DeferredTensor, write_safetensors};
use super::token_mixer::PackedMixer;
use super::weights::{FreshHead, WeightFiles, file_tensors, weights_file};
use burnish_util::machine::check_fits;

/// Writes the text of a config.json into a folder, and returns its path.
fn write_config(folder: &Path, text: String) -> Result<PathBuf> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let config = folder.join("config.json");
    std::fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
    Ok(config)
}

/// The source of the initial weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// The folder's model.safetensors.
    Pretrained,
    /// Random weights (see [`Decoder::random`]); only config.json is read.
    Random { seed: u64 },
}

/// A decoder of f32 parameters on one device: a causal language model, or one with the head of a [classifier](super::labels).
#[derive(Clone)]
pub struct CausalLm {
    pub config: DecoderConfig,
    pub net: Decoder,
    /// The device of the parameters, without autodiff.
    pub device: Device,
    /// The dtype of matmuls (the head's included) and of attention. Parameters, norms, the residual stream and log-softmax are
    /// f32.
    pub(super) dtype: FloatDType,
    /// True if training keeps only the input of each block and recomputes the rest in the backward pass.
    pub(super) gradient_checkpointing: bool,
    /// The adapter's settings and location, if the model has an adapter. Then only the adapter is trained.
    pub(super) lora: Option<Arc<AdapterInfo>>,
    /// Copies of parameters in `dtype` for several passes, if `dtype` is not f32.
    pub(super) low_precision: Option<Arc<LowPrecisionWeights>>,
    /// Noise on the embedded tokens of training passes.
    pub(super) noise: Option<Arc<EmbeddingNoise>>,
    /// The log and the losses of the routers of training passes.
    pub(super) router: Option<Arc<RouterPass>>,
    pub(super) hf: Arc<HfConfig>,
    /// The rotary frequencies.
    pub(super) frequencies: Option<Frequencies>,
    /// The rotary frequencies of layers with a window, if they differ.
    pub(super) local_frequencies: Option<Frequencies>,
}

/// Rotary frequencies, and the factor on their cos and sin.
pub(super) type Frequencies = (Arc<Vec<f32>>, f32);

impl CausalLm {
    /// Loads a Hugging Face folder without gradients; see [`CausalLm::trainable`].
    pub fn load(folder: &Path, init: Init, device: &Device) -> Result<Self> {
        Self::load_as(folder, HfConfig::read(folder)?, init, device)
    }

    /// Loads a Hugging Face folder with `hf` in place of its config.json.
    pub fn load_as(folder: &Path, hf: HfConfig, init: Init, device: &Device) -> Result<Self> {
        let config = hf.decoder().with_context(|| format!("{}", folder.display()))?;
        Self::with_config(folder, (hf, config), init, None, device)
    }

    /// Loads the weights of a folder into the network of `config`, which was read from the folder's `hf`.
    pub(super) fn with_config(
        folder: &Path,
        (hf, config): (HfConfig, DecoderConfig),
        init: Init,
        fresh_head: Option<&FreshHead>,
        device: &Device,
    ) -> Result<Self> {
        let dropouts = hf.dropouts();
        if !dropouts.is_empty() {
            tracing::warn!(
                "{}/config.json: {}: ignored, dropout is not applied: the policy that samples must be the policy that is trained",
                folder.display(),
                dropouts.join(", ")
            );
        }
        check_fits(config.weight_bytes(), || {
            let form = if config.quantization.is_some() { "4 bits and float32" } else { "float32" };
            format!("{}/config.json: a model of {} parameters in {form}", folder.display(), config.num_parameters())
        })?;
        let (hf, config) = match init {
            Init::Pretrained => (hf, config),
            // The weight files are not read, so a head in them does not count.
            Init::Random { .. } if hf.is_untied() => {
                (hf.without_weights(), DecoderConfig { tie_word_embeddings: true, ..config })
            }
            Init::Random { .. } => (hf, config),
        };
        if hf.is_untied() && config.head == HeadKind::Language {
            tracing::warn!(
                "{}: config.json says tie_word_embeddings: true, but the files hold a head `{}` that differs from the embedding: they are \
                 not tied, as in transformers 5, and saved files record it",
                folder.display(),
                config.naming.place("lm_head.weight").name
            );
        }
        let net = match init {
            Init::Pretrained => {
                let files = WeightFiles::open(folder)?;
                let unread = files.unread(folder);
                if !unread.is_empty() {
                    tracing::warn!(
                        "{}: {} is not read: only model.safetensors, or the files of its index, are read",
                        folder.display(),
                        unread.join(", ")
                    );
                }
                files.build(&config, fresh_head, device)?
            }
            Init::Random { seed } => {
                if let Some(file) = weights_file(folder) {
                    tracing::warn!(
                        "{}: {file} is not read, since `init` is random: a new run starts from random weights; set init=pretrained to \
                         read it",
                        folder.display()
                    );
                }
                Decoder::random(&config, seed, fresh_head, device)?
            }
        };
        let frequencies_of = |(rope, dims): (&RopeConfig, usize)| -> Frequencies {
            (rope.inverse_frequencies(dims).into(), rope.attention_factor as f32)
        };
        let frequencies = config.rope().map(frequencies_of);
        let local_frequencies = config.window_rope().map(frequencies_of);
        Ok(Self {
            config,
            net,
            device: device.clone(),
            dtype: FloatDType::F32,
            gradient_checkpointing: false,
            lora: None,
            low_precision: None,
            noise: None,
            router: None,
            hf: hf.into(),
            frequencies,
            local_frequencies,
        })
    }

    /// Returns the same model with matmuls and attention in bfloat16 or float32, and with or without gradient checkpointing.
    pub fn computing(mut self, bfloat16: bool, gradient_checkpointing: bool) -> Self {
        self.dtype = if bfloat16 { FloatDType::BF16 } else { FloatDType::F32 };
        self.gradient_checkpointing = gradient_checkpointing;
        self
    }

    /// Returns the same model, which shares its parameters, with noise on the embedded tokens of one training pass. The pass must
    /// be over the sequences that the noise was made for.
    pub fn with_noise(&self, noise: EmbeddingNoise) -> Self {
        Self { noise: Some(Arc::new(noise)), ..self.clone() }
    }

    /// Returns the same model, which shares its parameters, for training passes that add `share` of the losses of its routers and
    /// keep statistics. Without mixtures of experts, nothing changes.
    pub fn with_routers(&self, share: f64) -> Cow<'_, Self> {
        match self.config.mixture {
            Some(_) => Cow::Owned(Self { router: Some(Arc::new(RouterPass::new(share))), ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }

    /// The statistics of the routers in the training passes so far; `None` unless made by [`with_routers`](Self::with_routers).
    pub fn router_stats(&self) -> Option<RouterStats> {
        Some(self.router.as_ref()?.stats())
    }

    /// The routing of passes since the last call; `None` unless made by [`with_routers`](Self::with_routers). Each item is one
    /// mixture in one pass: the experts of each row, the best first.
    pub fn routed_experts(&self) -> Option<Vec<Vec<u32>>> {
        Some(self.router.as_ref()?.log.experts())
    }

    /// Returns the same model with parameters that require gradients: only the parameters of its adapter, if it has one.
    pub fn trainable(mut self) -> Self {
        self.net = self.net.train().with_frozen_scalars();
        if let Some(mixture) = &self.config.mixture {
            self.net = self.net.with_frozen_routers(mixture.router.frozen);
        }
        self
    }

    /// Loads other weights of the same architecture from a folder that this model was saved to. They use this model's dtype and
    /// checkpointing.
    pub fn reload(&self, folder: &Path) -> Result<Self> {
        let loaded = match self.config.head {
            HeadKind::Language => Self::load(folder, Init::Pretrained, &self.device)?,
            HeadKind::Classifier { labels, .. } => Self::load_labels(folder, Init::Pretrained, labels, None, &self.device)?,
        };
        Ok(Self { dtype: self.dtype, gradient_checkpointing: self.gradient_checkpointing, ..loaded })
    }

    /// Returns the same model without gradients, for sampling and reference passes. Parameters are shared, not copied.
    pub fn frozen(&self) -> Self {
        Self { net: self.net.valid(), ..self.clone() }
    }

    /// Returns the same model for several passes over the same weights; parameters are shared. Copies in a dtype other than f32
    /// are made once and kept until the returned model is dropped.
    pub fn for_passes(&self) -> Self {
        let low_precision = (self.dtype != FloatDType::F32).then(|| Arc::new(LowPrecisionWeights::default()));
        Self { low_precision, ..self.clone() }
    }

    /// Returns a [`frozen`](Self::frozen) model for several passes.
    pub fn inference(&self) -> Self {
        self.frozen().for_passes()
    }

    /// The matrix of the head [vocabulary, h] in the dtype of matmuls, without gradients.
    pub(super) fn low_precision_head(&self) -> Tensor<2> {
        let head = self.net.head();
        match &self.low_precision {
            Some(copies) => copies.get(head, self.dtype),
            None => cast(head.val().inner(), self.dtype),
        }
    }

    /// The number of parameters, including frozen values in 4 bits and the parameters of an adapter.
    pub fn num_parameters(&self) -> usize {
        self.net.num_params() + self.net.quantised().map(|(_, matrix)| matrix.shape().iter().product::<usize>()).sum::<usize>()
    }

    /// Describes the number of parameters; with an adapter also the number of trained ones.
    pub fn size(&self) -> String {
        let all = self.num_parameters();
        match &self.lora {
            None => format!("{all} parameters"),
            Some(lora) => format!("{all} parameters; only the {} in adapters are trained", lora.num_parameters()),
        }
    }

    /// Writes config.json and model.safetensors so that transformers loads the folder; returns the files written. An adapter is
    /// merged into the matrices, one matrix at a time; values in 4 bits become float32.
    pub fn save(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let config = write_config(folder, self.hf.with_dtype("float32")?)?;
        let (weights, adapter) = (folder.join("model.safetensors"), self.adapter());
        let tensors = file_tensors(&self.net, &self.config);
        let merged = tensors.iter().map(|tensor| {
            DeferredTensor::new(tensor.name.clone(), tensor.shape.clone(), || {
                let mut values = tensor.values();
                adapter.iter().for_each(|adapter| adapter.merge(&tensor.name, &mut values));
                values
            })
        });
        write_safetensors(&weights, &merged.collect::<Vec<_>>())?;
        Ok(vec![config, weights])
    }

    /// Writes only config.json, which says how the weights under an adapter are quantised.
    pub fn save_config(&self, folder: &Path) -> Result<PathBuf> {
        write_config(folder, self.hf.of_frozen_weights("float32")?)
    }

    /// Embeds tokens [ids, h] at their positions, outside any graph, with the columns of `layer_inputs.rs`.
    pub fn embed(&self, ids: &[u32], positions: &[usize]) -> Tensor<2> {
        let trunk = &self.net.model;
        let x = trunk.embed_tokens.weight.val().inner().select(0, index(ids.iter().map(|&id| id as usize), &self.device));
        let x = match self.config.embedding_scale {
            Some(scale) => x * scale,
            None => x,
        };
        let x = match &trunk.embed_positions {
            Some(table) => x + table.weight.val().inner().select(0, index(positions.iter().copied(), &self.device)),
            None => x,
        };
        self.with_layer_rows(x, ids, &self.device)
    }

    /// Returns the inputs that all blocks share in a pass over rows at these positions.
    pub(super) fn pass(&self, positions: &[usize]) -> Pass<'_> {
        let rotation = |(frequencies, factor): &Frequencies| {
            let (cos, sin) = cos_sin(frequencies, *factor, positions, &self.device);
            (cast(cos, self.dtype), cast(sin, self.dtype))
        };
        let factors = self.config.query_scaling.and_then(|scaling| scaling.factors(positions));
        let query_scale =
            factors.map(|factors| cast(tensor_from_vec(factors, [positions.len(), 1, 1], &self.device), self.dtype));
        Pass {
            rotation: self.frequencies.as_ref().map(rotation),
            local_rotation: self.local_frequencies.as_ref().map(rotation),
            query_scale,
            ..self.pass_without_rotation()
        }
    }

    /// Does what [`pass`](Self::pass) does, for a model without rotary positions or with a rotation that the caller adds.
    pub(super) fn pass_without_rotation(&self) -> Pass<'_> {
        let (config, dtype, low_precision) = (&self.config, self.dtype, self.low_precision.as_deref());
        let router_log = self.router.as_ref().map(|router| &router.log);
        Pass {
            rotation: None,
            local_rotation: None,
            layer_input: None,
            query_scale: None,
            config,
            dtype,
            low_precision,
            independent_rows: false,
            router_log,
        }
    }

    /// Returns the hidden states [rows, h] of embedded tokens laid out by `packed`.
    pub fn hidden(&self, x: Tensor<2>, packed: &Arc<Packed>) -> Tensor<2> {
        self.hidden_by(x, packed, &self.pass(&packed.positions()))
    }

    /// Computes [`hidden`](Self::hidden) without gradients. On the CPU a row's result does not depend on the number of rows.
    pub(super) fn independent_hidden(&self, x: Tensor<2>, packed: &Arc<Packed>) -> Tensor<2> {
        self.hidden_by(x, packed, &Pass { independent_rows: true, ..self.pass(&packed.positions()) })
    }

    fn hidden_by(&self, x: Tensor<2>, packed: &Arc<Packed>, pass: &Pass) -> Tensor<2> {
        self.net.forward(x, pass, &mut PackedMixer { packed, config: &self.config })
    }
}
