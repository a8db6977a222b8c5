//! LoRA (Hu et al. 2021, <https://arxiv.org/abs/2106.09685>), in PEFT's layout and with PEFT's initial values: a projection gives
//! y = x·Wᵀ + (alpha/r)·(x·Aᵀ)·Bᵀ, where W is frozen, A [r, in] is drawn uniformly from ±1/√in and B [out, r] starts at 0.
//!
//! Adapters run beside the frozen matrices everywhere, in generation too: nothing is merged for a rollout, so that no second
//! copy of the matrices exists and generation computes what training does.
//!
//! [`targets`] selects the projections, [`peft`] reads and writes files, and this file puts adapters on a model and takes them
//! off.

pub mod peft;
pub mod targets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use self::peft::{Factors, PeftAdapter, Whole};
use self::targets::{Target, in_our_order, in_their_order};
use super::causal_lm::CausalLm;
use super::config::{DecoderConfig, HeadKind};
use super::decoder::{Decoder, Lora};
use super::ops::{tensor_from_vec, to_host};
use crate::util::rng::Stream;

/// The settings `lora_rank` and the keys beside it.
#[derive(Clone, Debug, Default)]
pub struct LoraSettings {
    /// The rank r; 0 for no adapter, unless `adapter_path` has one.
    pub rank: usize,
    pub alpha: f64,
    /// `all-linear`, names or regular expressions; see [`targets`].
    pub target_modules: Vec<String>,
    pub exclude_modules: Vec<String>,
    /// An adapter in PEFT's layout to start from.
    pub adapter_path: Option<PathBuf>,
    /// The group of these keys, for error messages.
    pub group: &'static str,
}

impl LoraSettings {
    /// The adapter to start from; `None` if there is to be none.
    ///
    /// # Errors
    /// If the model lacks a named projection, or files hold no adapter that can be trained here.
    pub fn start(&self, config: &DecoderConfig, base: &Path, seed: u64) -> Result<Option<PeftAdapter>> {
        if let Some(folder) = &self.adapter_path {
            let key = format!("{}.lora_adapter_path", self.group);
            let adapter = PeftAdapter::read(folder).context(key.clone())?;
            let (rank, group) = (adapter.rank, self.group);
            ensure!(
                [0, rank].contains(&self.rank),
                "{key}: this adapter has rank {rank}, {group}.lora_rank is {}; leave it at 0",
                self.rank
            );
            return Ok(Some(PeftAdapter { base: peft::absolute(base), ..adapter }));
        }
        if self.rank == 0 {
            return Ok(None);
        }
        let targets = targets::select(config, self)?;
        let factors = targets.into_iter().map(|target| (target.path.clone(), fresh(&target, self.rank, seed))).collect();
        let (rank, alpha, base) = (self.rank, self.alpha, peft::absolute(base));
        Ok(Some(PeftAdapter { rank, alpha, base, transposed: config.naming.transposed, factors, saved: BTreeMap::new() }))
    }
}

/// PEFT's initial values, drawn from the module's own random stream.
fn fresh(target: &Target, rank: usize, seed: u64) -> Factors {
    let name = target.path.as_bytes().chunks(8).map(|part| part.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    let mut stream = Stream::new(seed, "lora", &name.collect::<Vec<_>>());
    let bound = 1.0 / (target.input as f64).sqrt();
    let a = (0..rank * target.input).map(|_| ((2.0 * stream.uniform() - 1.0) * bound) as f32).collect();
    Factors { input: target.input, output: target.output, a, b: vec![0.0; target.output * rank] }
}

/// A model's adapter without its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Adapted {
    pub rank: usize,
    pub alpha: f64,
    /// The folder of the frozen weights.
    pub base: String,
    /// The adapted projections, in the order of the network.
    pub targets: Vec<Target>,
}

impl Adapted {
    pub fn num_parameters(&self) -> usize {
        self.targets.iter().map(|target| self.rank * (target.input + target.output)).sum()
    }
}

impl CausalLm {
    /// Returns the same model with an adapter, the only part of it that will be trained. It replaces an earlier adapter.
    ///
    /// # Errors
    /// If the adapter belongs to another model.
    pub fn adapted(mut self, adapter: &PeftAdapter) -> Result<Self> {
        let all = targets::linears(&self.config);
        for (path, factors) in &adapter.factors {
            let Some(target) = all.iter().find(|target| target.path == *path) else {
                bail!("the adapter is of another model: this one has no module {path}");
            };
            let (theirs, ours) = ((factors.output, factors.input), (target.output, target.input));
            ensure!(theirs == ours, "the adapter is of another model: its {path} is {theirs:?}, here {ours:?} (out, in)");
        }
        let targets: Vec<Target> = all.into_iter().filter(|target| adapter.factors.contains_key(&target.path)).collect();
        let scale = adapter.scale();
        let mut net = self.net.no_grad();
        for (name, slot) in slots(&mut net) {
            *slot = targets.iter().find(|target| target.name == name).map(|target| {
                let Factors { input, output, a, b } = &adapter.factors[&target.path];
                let b = in_our_order(target, &self.config, adapter.rank, b);
                let matrix = |values: Vec<f32>, shape| Param::from_tensor(matrix(values, shape, &self.device));
                Lora { a: matrix(a.clone(), [adapter.rank, *input]), b: matrix(b, [*output, adapter.rank]), scale }
            });
        }
        self.net = net;
        self.set_scalar_head(&adapter.saved)?;
        let PeftAdapter { rank, alpha, base, .. } = adapter;
        self.lora = Some(Arc::new(Adapted { rank: *rank, alpha: *alpha, base: base.clone(), targets }));
        Ok(self)
    }

    /// The adapter as files hold it; `None` if the model has none.
    pub fn adapter(&self) -> Option<PeftAdapter> {
        let Adapted { rank, alpha, base, targets } = self.lora.as_deref()?;
        let mut net = self.net.clone();
        let factors = slots(&mut net).into_iter().filter_map(|(name, slot)| {
            let (lora, target) = (slot.as_ref()?, targets.iter().find(|target| target.name == name)?);
            let [a, b] = [&lora.a, &lora.b].map(|factor| to_host(factor.val().inner()));
            let b = in_their_order(target, &self.config, *rank, &b);
            Some((target.path.clone(), Factors { input: target.input, output: target.output, a, b }))
        });
        Some(PeftAdapter {
            rank: *rank,
            alpha: *alpha,
            base: base.clone(),
            transposed: self.config.naming.transposed,
            factors: factors.collect(),
            saved: self.scalar_head(),
        })
    }

    /// The parameters of a scalar head, by name in files: it is trained beside an adapter, as PEFT does with the heads of
    /// classifiers.
    fn scalar_head(&self) -> BTreeMap<String, Whole> {
        let head = self.net.lm_head.as_ref().filter(|_| self.config.head != HeadKind::Language);
        let place = |parameter: &str| self.config.place(parameter).name;
        let weight =
            head.map(|head| (place("lm_head.weight"), (head.weight.dims().to_vec(), to_host(head.weight.val().inner()))));
        let bias = head.and_then(|head| head.bias.as_ref());
        let bias = bias.map(|bias| (place("lm_head.bias"), (bias.dims().to_vec(), to_host(bias.val().inner()))));
        weight.into_iter().chain(bias).collect()
    }

    /// Sets the saved parameters of a scalar head, and makes the head trainable.
    fn set_scalar_head(&mut self, saved: &BTreeMap<String, Whole>) -> Result<()> {
        let own = self.scalar_head();
        for (name, (shape, _)) in saved {
            let fits = own.get(name).is_some_and(|(own, _)| own == shape);
            ensure!(
                fits,
                "the adapter holds all of `{name}` (modules_to_save), which this model does not train beside an adapter"
            );
        }
        if own.is_empty() {
            return Ok(());
        }
        let value = |parameter: &str| saved.get(&self.config.place(parameter).name).map(|(_, values)| values.clone());
        let (weight, bias) = (value("lm_head.weight"), value("lm_head.bias"));
        let Some(head) = self.net.lm_head.as_mut() else { return Ok(()) };
        if let Some(weight) = weight {
            head.weight = Param::from_tensor(tensor_from_vec(weight, head.weight.dims(), &self.device));
        }
        if let (Some(values), Some(bias)) = (bias, head.bias.as_mut()) {
            *bias = Param::from_tensor(tensor_from_vec(values, bias.dims(), &self.device));
        }
        head.weight = head.weight.clone().set_require_grad(true);
        head.bias = head.bias.take().map(|bias| bias.set_require_grad(true));
        Ok(())
    }

    /// Returns the model that was adapted: the same parameters, shared and not copied, without the adapter.
    pub fn without_adapter(&self) -> Self {
        let mut base = self.clone();
        slots(&mut base.net).into_iter().for_each(|(_, slot)| *slot = None);
        base.lora = None;
        base
    }
}

/// The places of adapters in a network: one for each projection, by its name here, and for q, k and v where files hold them as
/// one.
fn slots(net: &mut Decoder) -> Vec<(String, &mut Option<Lora>)> {
    let blocks = net.model.layers.iter_mut().enumerate();
    let of_block = blocks.flat_map(|(layer, block)| {
        let (attention, mlp) = (&mut block.self_attn, &mut block.mlp);
        let slots = [
            ("self_attn.q_proj", &mut attention.q_proj.lora),
            ("self_attn.k_proj", &mut attention.k_proj.lora),
            ("self_attn.v_proj", &mut attention.v_proj.lora),
            ("self_attn.qkv_proj", &mut attention.qkv_lora),
            ("self_attn.o_proj", &mut attention.o_proj.lora),
            ("mlp.up_proj", &mut mlp.up_proj.lora),
            ("mlp.down_proj", &mut mlp.down_proj.lora),
        ];
        let gate = mlp.gate_proj.as_mut().map(|gate| ("mlp.gate_proj", &mut gate.lora));
        slots.into_iter().chain(gate).map(move |(name, slot)| (format!("model.layers.{layer}.{name}"), slot))
    });
    of_block.collect()
}

fn matrix(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    tensor_from_vec(values, shape, device)
}
