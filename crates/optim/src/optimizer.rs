//! An optimizer and its state, by parameter name.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, Tensor};
use safetensors::Dtype;

use super::detached::{DetachedParam, detach, put_back};
use super::file_tensors::{FileTensors, place};
use super::rule::{Parameter, ParameterState, Rule, Slot, StateDtype, Step, StoredTensor, TrainedParam};
use super::shards::Shards;
use burnish_distributed::Ranks;
use burnish_model::decoder::Decoder;
use burnish_model::naming::FusedPart;
use burnish_model::tensor_files::DeferredTensor;
use burnish_model::tensor_values::{count, numbers};
use burnish_model::weight_tensor::WeightTensor;
use burnish_model::weights::trained_shapes;
use burnish_model::{DecoderConfig, Gradients};

/// An optimizer and its state by parameter name.
pub struct Optimizer {
    /// Name of its registry entry, which a checkpoint stores.
    pub name: &'static str,
    pub(super) rules: Rules,
    /// Number of updates made.
    pub step: u64,
    /// Parameters that have been updated on any rank: all ranks have the same names here.
    pub(super) state: BTreeMap<String, OptimizerState>,
}

/// State of a parameter, and its tensors' names and sizes.
pub(super) struct OptimizerState {
    /// Slots of the whole parameter.
    pub slots: Vec<Slot>,
    /// State of this rank's elements; empty if it has no elements of this parameter.
    pub state: ParameterState,
}

/// A function from a parameter's name, a slot and this rank's elements of it to the elements of all ranks.
pub(super) type Gather<'a> = dyn Fn(&str, &Slot, Vec<f32>) -> Vec<f32> + 'a;

/// A state tensor of a checkpoint, from which a rank reads only its own elements.
pub(super) trait SavedState {
    /// Returns the number of elements.
    fn count(&self) -> usize;

    /// Returns a range of the elements.
    ///
    /// # Errors
    /// If the tensor has elements that are not numbers of the expected dtype.
    fn numbers(&self, run: Range<usize>) -> Result<Vec<f32>>;
}

impl SavedState for WeightTensor<'_> {
    fn count(&self) -> usize {
        count(self)
    }

    fn numbers(&self, run: Range<usize>) -> Result<Vec<f32>> {
        numbers(self, run)
    }
}

/// The update rule of most parameters, and another one for parameters with certain names.
pub(super) struct Rules {
    general: Box<dyn Rule>,
    exempt: Option<(Vec<String>, Box<dyn Rule>)>,
}

impl Rules {
    pub(crate) fn rule_of(&self, parameter: Parameter) -> &dyn Rule {
        self.exempt(parameter.name).unwrap_or(&*self.general)
    }

    /// Returns the other rule if it updates the parameter with this name.
    fn exempt(&self, parameter: &str) -> Option<&dyn Rule> {
        let exempt = self.exempt.as_ref().filter(|(names, _)| names.iter().any(|name| parameter.contains(name.as_str())));
        exempt.map(|(_, rule)| &**rule)
    }
}

impl Optimizer {
    pub(super) fn new(name: &'static str, rule: Box<dyn Rule>) -> Self {
        Self { name, rules: Rules { general: rule, exempt: None }, step: 0, state: BTreeMap::new() }
    }

    /// Adds another update rule for parameters whose names contain one of these.
    pub(super) fn with_exempt(self, names: Vec<String>, rule: Box<dyn Rule>) -> Self {
        Self { rules: Rules { exempt: Some((names, rule)), ..self.rules }, ..self }
    }

    /// Returns the bytes of the state of a parameter, on all ranks together.
    pub fn state_bytes(&self, parameter: Parameter) -> usize {
        self.rules.rule_of(parameter).slots(parameter).into_iter().map(Slot::bytes).sum()
    }

    /// Returns the largest number of bytes of optimizer state on one rank, once all of these parameters have been updated.
    /// `shapes` is in the order of names.
    pub fn state_bytes_of_a_rank(&self, shapes: impl IntoIterator<Item = (String, Vec<usize>)>, ranks: usize) -> usize {
        let shards = Shards::new(shapes, ranks, |parameter| self.rules.rule_of(parameter).splits(parameter));
        let mut bytes = vec![0; ranks];
        for sharded in &shards.parameters {
            let slots = self.rules.rule_of(sharded.parameter()).slots(sharded.parameter());
            for (rank, bytes) in bytes.iter_mut().enumerate() {
                let numbers = |slot: &Slot| slot.range_of(&sharded.range_of(rank), sharded.size()).len();
                *bytes += slots.iter().map(|slot| slot.bytes_of(numbers(slot))).sum::<usize>();
            }
        }
        bytes.into_iter().max().unwrap_or(0)
    }

    /// Returns the bytes of the state that this rank stores so far.
    #[cfg(test)]
    pub(super) fn stored_bytes(&self) -> usize {
        let states = self.state.values().flat_map(|state| state.slots.iter().zip(&state.state));
        states.map(|(slot, stored)| slot.bytes_of(stored.count())).sum()
    }

    /// Returns true if the optimizer updates the tensors of the files, and these differ from the parameters of the network.
    pub(super) fn sees_files(&self, config: &DecoderConfig) -> bool {
        self.rules.general.sees_tensors() && config.naming.differs()
    }

    /// Returns the shape of the tensor in which a parameter is updated; `None` if that tensor is counted for another of its
    /// parameters.
    pub fn updated_shape(&self, name: &str, shape: &[usize], config: &DecoderConfig) -> Option<Vec<usize>> {
        match place(name, config).filter(|_| self.sees_files(config)) {
            None => Some(shape.to_vec()),
            Some((_, place)) => place.part.is_none_or(FusedPart::is_first).then(|| place.shape(shape, config)),
        }
    }

    /// Returns the division of a network's trained parameters among `ranks`.
    pub(super) fn shards(&self, net: &Decoder, config: &DecoderConfig, ranks: usize) -> Shards {
        let trained = trained_shapes(net);
        let alike = |one: &str, other: &str| self.rules.exempt(one).is_some() == self.rules.exempt(other).is_some();
        let file_tensors =
            if self.sees_files(config) { FileTensors::new(&trained, config, alike) } else { FileTensors::default() };
        let shards =
            Shards::new(file_tensors.shapes(trained), ranks, |parameter| self.rules.rule_of(parameter).splits(parameter));
        Shards { file_tensors, ..shards }
    }

    /// Updates every parameter that has a gradient, after scaling the gradients by `grad_scale`. The updated tensors are the
    /// network's parameters. A [`Learner`](super::Learner) updates the tensors of the files instead if they differ and the rule
    /// depends on it.
    pub fn update(&mut self, net: Decoder, gradients: Gradients, lr: f64, grad_scale: f64) -> Decoder {
        self.step += 1;
        let step = Step { number: self.step, lr, grad_scale };
        let (net, detached) = detach(net, gradients);
        let (exempt, others): (Vec<_>, Vec<_>) =
            detached.into_iter().partition(|detached| self.rules.exempt(&detached.name).is_some());
        let mut weights = BTreeMap::new();
        for of_one_rule in [others, exempt] {
            self.update_together(step, of_one_rule, &mut weights);
        }
        put_back(net, weights)
    }

    /// Updates parameters of one rule, and adds their weights and shapes to `updated`.
    fn update_together(&mut self, step: Step, all: Vec<DetachedParam>, updated: &mut BTreeMap<String, (Tensor<1>, Vec<usize>)>) {
        let Some(first) = all.first() else { return };
        let rule = self.rules.rule_of(Parameter { name: &first.name, shape: &first.shape });
        let (mut known, mut tensors) = (Vec::new(), Vec::new());
        for DetachedParam { name, shape, weight, gradient } in all {
            let (slots, state) = match self.state.remove(&name) {
                Some(OptimizerState { slots, state }) => (slots, Some(state)),
                None => (rule.slots(Parameter { name: &name, shape: &shape }), None),
            };
            known.push((name, shape, slots));
            tensors.push((weight, gradient, state));
        }
        let parameters = known.iter().map(|(name, shape, _)| Parameter { name, shape });
        let trained = parameters.zip(tensors).map(|(parameter, (weight, gradient, state))| TrainedParam {
            parameter,
            weight,
            gradient,
            state,
        });
        let results = rule.update_together(step, trained.collect());
        for ((name, shape, slots), (weight, state)) in known.into_iter().zip(results) {
            if !slots.is_empty() {
                self.state.insert(name.clone(), OptimizerState { slots, state });
            }
            updated.insert(name, (weight, shape));
        }
    }

    /// Returns the state as named tensors, such as `NAME.exp_avg` (torch's names), for a checkpoint. Each rank has only its own
    /// elements: a [`Learner`](super::Learner) saves the elements of all ranks.
    pub fn tensors(&self) -> Vec<DeferredTensor<'_>> {
        self.tensors_by(&|_, _, own| own)
    }

    /// Returns the state as named tensors; `gather` turns this rank's elements into the elements of all ranks when a tensor is
    /// written.
    pub(super) fn tensors_by<'a>(&'a self, gather: &'a Gather<'a>) -> Vec<DeferredTensor<'a>> {
        let tensor = move |name: &'a String, kept: &'a OptimizerState, index: usize| {
            let slot = &kept.slots[index];
            let values = move || gather(name, slot, kept.state.get(index).map_or_else(Vec::new, StoredTensor::values));
            let tensor = DeferredTensor::new(format!("{name}.{}", slot.kind), vec![slot.size], values);
            if slot.dtype == StateDtype::U8 { tensor.with_dtype(Dtype::U8) } else { tensor }
        };
        let of =
            |(name, kept): (&'a String, &'a OptimizerState)| (0..kept.slots.len()).map(move |index| tensor(name, kept, index));
        self.state.iter().flat_map(of).collect()
    }

    /// Returns this rank's elements of a parameter's state tensor; empty if the rank stores none.
    pub(super) fn local_elements(&self, parameter: &str, kind: &str) -> Vec<f32> {
        let state = self.state.get(parameter);
        let stored = state.and_then(|state| state.state.get(state.slots.iter().position(|slot| slot.kind == kind)?));
        stored.map_or_else(Vec::new, StoredTensor::values)
    }

    /// Restores the result of [`tensors`](Self::tensors) for the trained parameters of `net`. Of each tensor, only this rank's
    /// share is read. A parameter without a state has had no gradient so far, like all parameters before the first update: its
    /// state starts empty, as in an uninterrupted run.
    ///
    /// # Errors
    /// If there is no state at all although updates were made. Also if only some tensors of a parameter's state exist, or a
    /// tensor has a wrong size or dtype, holds an impossible value, or belongs to a parameter that is not trained.
    pub(super) fn restore(
        &mut self,
        step: u64,
        mut tensors: BTreeMap<String, impl SavedState>,
        (net, config): (&Decoder, &DecoderConfig),
        ranks: &Ranks,
        device: &Device,
    ) -> Result<()> {
        self.state.clear();
        let nothing = tensors.is_empty();
        let mut keeps = false;
        for sharded in self.shards(net, config, ranks.size()).parameters {
            let (parameter, own) = (sharded.parameter(), sharded.range_of(ranks.rank()));
            let slots = self.rules.rule_of(parameter).slots(parameter);
            keeps |= !slots.is_empty();
            let key = |slot: &Slot| format!("{}.{}", parameter.name, slot.kind);
            if slots.iter().all(|slot| !tensors.contains_key(&key(slot))) {
                continue;
            }
            let mut stored = |slot: &Slot| {
                let key = key(slot);
                let saved = tensors.remove(&key).with_context(|| format!("optimizer state: `{key}` is missing"))?;
                if saved.count() != slot.size {
                    bail!("optimizer state: `{key}` has {} elements instead of {}", saved.count(), slot.size);
                }
                let local_elements = slot.range_of(&own, parameter.size());
                let values = saved.numbers(local_elements).with_context(|| format!("optimizer state: `{key}`"))?;
                if let Some(number) = values.iter().find(|number| !slot.may_hold(**number)) {
                    bail!(
                        "optimizer state: `{key}` holds {number}, which no update produces: remove `optimizer` from \
                         checkpoint.load_contents to start without a state"
                    );
                }
                Ok((!own.is_empty()).then(|| StoredTensor::restored(slot.dtype, values, device)))
            };
            let state = slots.iter().filter_map(|slot| stored(slot).transpose()).collect::<Result<_>>()?;
            self.state.insert(sharded.name, OptimizerState { slots, state });
        }
        if step > 0 && nothing && keeps {
            bail!("optimizer state: {step} updates were made, but there are no tensors of {}", self.name);
        }
        self.step = step;
        match tensors.keys().next() {
            None => Ok(()),
            Some(name) => {
                bail!(
                    "optimizer state: `{name}` does not belong to a trained parameter of this model, or is not a state of {}",
                    self.name
                )
            }
        }
    }
}
