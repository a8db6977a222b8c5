//! Attaches an adapter to a model, reads it and removes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use super::adapter_info::AdapterInfo;
use super::peft::{Factors, PeftAdapter, ShapedValues};
use super::targets::{self, LoraTarget, in_our_order, in_their_order};
use crate::causal_lm::CausalLm;
use crate::config::HeadKind;
use crate::decoder::{Decoder, Lora};
use crate::latent_attention::LatentAttention;
use crate::linear_attention::{DeltaNet, Mamba, ShortConv};
use crate::matrix::Matrix;
use crate::ops::{tensor_from_vec, to_host};

impl CausalLm {
    /// Returns the same model with an adapter; only the adapter will be trained. It replaces an earlier adapter.
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
        let targets: Vec<LoraTarget> = all.into_iter().filter(|target| adapter.factors.contains_key(&target.path)).collect();
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
        self.lora = Some(Arc::new(AdapterInfo { rank: *rank, alpha: *alpha, base: base.clone(), targets }));
        Ok(self)
    }

    /// Returns the adapter as files hold it; `None` if the model has no adapter.
    pub fn adapter(&self) -> Option<PeftAdapter> {
        let AdapterInfo { rank, alpha, base, targets } = self.lora.as_deref()?;
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

    /// The parameters of a scalar head, by their names in files. The head is trained in addition to the adapter, as PEFT does for
    /// classifiers.
    fn scalar_head(&self) -> BTreeMap<String, ShapedValues> {
        let head = self.net.lm_head.as_ref().filter(|_| self.config.head != HeadKind::Language);
        let place = |parameter: &str| self.config.place(parameter).name;
        let weight = head.and_then(|head| head.weight.float());
        let weight = weight.map(|weight| (place("lm_head.weight"), (weight.dims().to_vec(), to_host(weight.val().inner()))));
        let bias = head.and_then(|head| head.bias.as_ref());
        let bias = bias.map(|bias| (place("lm_head.bias"), (bias.dims().to_vec(), to_host(bias.val().inner()))));
        weight.into_iter().chain(bias).collect()
    }

    /// Sets the saved parameters of a scalar head, and makes the head trainable.
    fn set_scalar_head(&mut self, saved: &BTreeMap<String, ShapedValues>) -> Result<()> {
        let head = self.scalar_head();
        for (name, (shape, _)) in saved {
            let fits = head.get(name).is_some_and(|(own, _)| own == shape);
            ensure!(
                fits,
                "the adapter holds all of `{name}` (modules_to_save), which this model does not train in addition to an adapter"
            );
        }
        if head.is_empty() {
            return Ok(());
        }
        let value = |parameter: &str| saved.get(&self.config.place(parameter).name).map(|(_, values)| values.clone());
        let (weight, bias) = (value("lm_head.weight"), value("lm_head.bias"));
        let Some(head) = self.net.lm_head.as_mut() else { return Ok(()) };
        if let Some(weight) = weight {
            head.weight = Matrix::Float(Param::from_tensor(tensor_from_vec(weight, head.weight.dims(), &self.device)));
        }
        if let (Some(values), Some(bias)) = (bias, head.bias.as_mut()) {
            *bias = Param::from_tensor(tensor_from_vec(values, bias.dims(), &self.device));
        }
        head.weight = head.weight.clone().set_require_grad(true);
        head.bias = head.bias.take().map(|bias| bias.set_require_grad(true));
        Ok(())
    }

    /// Returns the base model without the adapter. Parameters are shared, not copied.
    pub fn without_adapter(&self) -> Self {
        let mut base = self.clone();
        slots(&mut base.net).into_iter().for_each(|(_, slot)| *slot = None);
        base.lora = None;
        base
    }
}

/// The adapter slots of a network: one for each projection, by its name here, and one for q, k and v together and for gate and up
/// together (used if files hold them as one matrix).
fn slots(net: &mut Decoder) -> Vec<(String, &mut Option<Lora>)> {
    let of_model = net.model.per_layer_model_projection.iter_mut().map(|proj| (targets::LAYER_INPUTS.to_owned(), &mut proj.lora));
    let blocks = net.model.layers.iter_mut().enumerate();
    let of_block = blocks.flat_map(|(layer, block)| {
        let mut slots = Vec::new();
        if let Some(attention) = &mut block.self_attn {
            slots.extend([
                ("self_attn.q_proj", &mut attention.q_proj.lora),
                ("self_attn.qkv_proj", &mut attention.qkv_lora),
                ("self_attn.o_proj", &mut attention.o_proj.lora),
            ]);
            let keys = [("self_attn.k_proj", &mut attention.k_proj), ("self_attn.v_proj", &mut attention.v_proj)];
            slots.extend(keys.into_iter().filter_map(|(name, proj)| Some((name, &mut proj.as_mut()?.lora))));
        }
        slots.extend(block.latent_attn.iter_mut().flat_map(LatentAttention::lora_slots));
        slots.extend(block.linear_attn.iter_mut().flat_map(DeltaNet::lora_slots));
        slots.extend(block.conv.iter_mut().flat_map(ShortConv::lora_slots));
        slots.extend(block.mamba.iter_mut().flat_map(Mamba::lora_slots));
        slots.extend(block.mlp.adapter_slots());
        slots.extend(block.per_layer_input_gate.iter_mut().map(|gate| ("per_layer_input_gate", &mut gate.lora)));
        slots.extend(block.per_layer_projection.iter_mut().map(|proj| ("per_layer_projection", &mut proj.lora)));
        slots.into_iter().map(move |(name, slot)| (format!("model.layers.{layer}.{name}"), slot))
    });
    of_block.chain(of_model).collect()
}

fn matrix(values: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    tensor_from_vec(values, shape, device)
}
