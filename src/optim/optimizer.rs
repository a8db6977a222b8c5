//! An optimizer and its state, by parameter name.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use safetensors::Dtype;

use super::rule::{Form, Parameter, Rule, Slot, State, Step, Stored};
use crate::model::Gradients;
use crate::model::decoder::Decoder;
use crate::model::tensor_files::Deferred;
use crate::model::weights::trained_shapes;

/// An optimizer and its state by parameter name.
pub struct Optimizer {
    /// The name of its entry, which a checkpoint keeps.
    pub name: &'static str,
    rules: Rules,
    /// The number of updates made.
    pub step: u64,
    state: BTreeMap<String, Kept>,
}

/// The state of a parameter, and its tensors' names and sizes.
struct Kept {
    slots: Vec<Slot>,
    state: State,
}

/// The update of most parameters, and that of the ones with such names.
struct Rules {
    all: Box<dyn Rule>,
    exempt: Option<(Vec<String>, Box<dyn Rule>)>,
}

impl Rules {
    fn of(&self, parameter: Parameter) -> &dyn Rule {
        let exempt = self.exempt.as_ref().filter(|(names, _)| names.iter().any(|name| parameter.name.contains(name.as_str())));
        exempt.map_or(&*self.all, |(_, rule)| &**rule)
    }
}

impl Optimizer {
    pub(super) fn new(name: &'static str, rule: Box<dyn Rule>) -> Self {
        Self { name, rules: Rules { all: rule, exempt: None }, step: 0, state: BTreeMap::new() }
    }

    /// Returns the optimizer with another update of the parameters whose names contain one of these.
    pub(super) fn with_exempt(self, names: Vec<String>, rule: Box<dyn Rule>) -> Self {
        Self { rules: Rules { exempt: Some((names, rule)), ..self.rules }, ..self }
    }

    /// Returns the bytes of the state of a parameter.
    pub fn state_bytes(&self, parameter: Parameter) -> usize {
        self.rules.of(parameter).slots(parameter).into_iter().map(Slot::bytes).sum()
    }

    /// Updates every parameter that has a gradient, after scaling the gradients by `grad_scale`.
    pub fn update(&mut self, net: Decoder, gradients: Gradients, lr: f64, grad_scale: f64) -> Decoder {
        self.step += 1;
        let step = Step { number: self.step, lr, grad_scale };
        net.map(&mut Update { step, gradients, rules: &self.rules, state: &mut self.state, path: Vec::new() })
    }

    /// Returns the state as named tensors, such as `NAME.exp_avg` (torch's names), for a checkpoint.
    pub fn tensors(&self) -> Vec<Deferred<'_>> {
        let named = |name: &String, slot: &Slot, stored| {
            let tensor = Deferred::new(format!("{name}.{}", slot.kind), vec![slot.size], move || Stored::values(stored));
            if slot.form == Form::U8 { tensor.with_dtype(Dtype::U8) } else { tensor }
        };
        let parameters = self.state.iter();
        parameters
            .flat_map(|(name, kept)| kept.slots.iter().zip(&kept.state).map(move |(slot, stored)| named(name, slot, stored)))
            .collect()
    }

    /// Restores what [`tensors`](Self::tensors) returned, for the parameters of `net` that are trained. A parameter without
    /// a state has had no gradient so far, as all of them before the first update: it starts afresh, as in an uninterrupted run.
    ///
    /// # Errors
    /// If there is no state at all after updates, or one tensor of a parameter's state is there without the others, has another
    /// size, or belongs to a parameter that is not trained.
    pub fn restore(&mut self, step: u64, mut tensors: BTreeMap<String, Vec<f32>>, net: &Decoder, device: &Device) -> Result<()> {
        self.state.clear();
        let nothing = tensors.is_empty();
        let mut keeps = false;
        for (name, shape) in trained_shapes(net) {
            let parameter = Parameter { name: &name, shape: &shape };
            let slots = self.rules.of(parameter).slots(parameter);
            keeps |= !slots.is_empty();
            let key = |slot: &Slot| format!("{name}.{}", slot.kind);
            if slots.iter().all(|slot| !tensors.contains_key(&key(slot))) {
                continue;
            }
            let mut stored = |slot: &Slot| {
                let key = key(slot);
                let values = tensors.remove(&key).with_context(|| format!("optimizer state: `{key}` is missing"))?;
                if values.len() != slot.size {
                    bail!("optimizer state: `{key}` has {} elements, where {} belong", values.len(), slot.size);
                }
                Ok(Stored::restored(slot.form, values, device))
            };
            let state = slots.iter().map(&mut stored).collect::<Result<_>>()?;
            self.state.insert(name, Kept { slots, state });
        }
        if step > 0 && nothing && keeps {
            bail!("optimizer state: {step} updates were made, and there are no tensors of {}", self.name);
        }
        self.step = step;
        match tensors.keys().next() {
            None => Ok(()),
            Some(name) => {
                bail!("optimizer state: `{name}` is of no trained parameter of this model, or not a state of {}", self.name)
            }
        }
    }
}

struct Update<'a> {
    step: Step,
    gradients: Gradients,
    rules: &'a Rules,
    state: &'a mut BTreeMap<String, Kept>,
    path: Vec<String>,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(gradient) = self.gradients.0.remove(&name) else { return param };
        let (id, weight, mapper) = param.consume();
        let shape = weight.dims();
        let weight = weight.inner().reshape([shape.iter().product::<usize>()]);
        let parameter = Parameter { name: &name, shape: &shape };
        let rule = self.rules.of(parameter);
        let (slots, state) = match self.state.remove(&name) {
            Some(Kept { slots, state }) => (slots, Some(state)),
            None => (rule.slots(parameter), None),
        };
        let (weight, state) = rule.update(self.step, parameter, weight, gradient, state);
        if !slots.is_empty() {
            self.state.insert(name, Kept { slots, state });
        }
        Param::from_mapped_value(id, Tensor::from_inner(weight.reshape(shape)).require_grad(), mapper)
    }
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}
