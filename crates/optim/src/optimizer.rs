//! An optimizer and its state, by parameter name.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use burn::tensor::{Device, Tensor};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::held::{Held, differs, place};
use super::rule::{Form, Parameter, Rule, Slot, State, Step, Stored, Trained};
use super::shards::Shards;
use super::taken::{Taken, put_back, take};
use burnish_distributed::Ranks;
use burnish_model::decoder::Decoder;
use burnish_model::tensor_files::Deferred;
use burnish_model::tensor_values::{count, numbers};
use burnish_model::weights::trained_shapes;
use burnish_model::{DecoderConfig, Gradients};

/// An optimizer and its state by parameter name.
pub struct Optimizer {
    /// The name of its entry, which a checkpoint keeps.
    pub name: &'static str,
    pub(super) rules: Rules,
    /// The number of updates made.
    pub step: u64,
    /// The parameters that have been updated, on any rank: all ranks have the same names here.
    pub(super) state: BTreeMap<String, Kept>,
}

/// The state of a parameter, and its tensors' names and sizes.
pub(super) struct Kept {
    /// Those of the whole parameter.
    pub slots: Vec<Slot>,
    /// The state of this rank's elements; empty if it has none of this parameter.
    pub state: State,
}

/// A function from a parameter's name, a slot and this rank's numbers of it to those of all ranks.
pub(super) type Gather<'a> = dyn Fn(&str, &Slot, Vec<f32>) -> Vec<f32> + 'a;

/// A state tensor of a checkpoint, of which a rank reads only its own numbers.
pub(super) trait Saved {
    /// Returns how many numbers there are.
    fn count(&self) -> usize;

    /// Returns a run of the numbers.
    ///
    /// # Errors
    /// If the tensor holds what is no number here, for any run.
    fn numbers(&self, run: Range<usize>) -> Result<Vec<f32>>;
}

impl Saved for TensorView<'_> {
    fn count(&self) -> usize {
        count(self)
    }

    fn numbers(&self, run: Range<usize>) -> Result<Vec<f32>> {
        numbers(self, run)
    }
}

/// The update of most parameters, and that of the ones with such names.
pub(super) struct Rules {
    all: Box<dyn Rule>,
    exempt: Option<(Vec<String>, Box<dyn Rule>)>,
}

impl Rules {
    pub fn of(&self, parameter: Parameter) -> &dyn Rule {
        self.exempt(parameter.name).unwrap_or(&*self.all)
    }

    /// Returns the other rule if it updates the parameter with this name.
    fn exempt(&self, parameter: &str) -> Option<&dyn Rule> {
        let exempt = self.exempt.as_ref().filter(|(names, _)| names.iter().any(|name| parameter.contains(name.as_str())));
        exempt.map(|(_, rule)| &**rule)
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

    /// Returns the bytes of the state of a parameter, on all ranks together.
    pub fn state_bytes(&self, parameter: Parameter) -> usize {
        self.rules.of(parameter).slots(parameter).into_iter().map(Slot::bytes).sum()
    }

    /// Returns the bytes of the state of these parameters, in the order of their names, that the rank with the most of them keeps
    /// once all have been updated.
    pub fn state_bytes_of_a_rank(&self, shapes: impl IntoIterator<Item = (String, Vec<usize>)>, ranks: usize) -> usize {
        let shards = Shards::new(shapes, ranks, |parameter| self.rules.of(parameter).splits(parameter));
        let mut bytes = vec![0; ranks];
        for sharded in &shards.parameters {
            let slots = self.rules.of(sharded.parameter()).slots(sharded.parameter());
            for (rank, bytes) in bytes.iter_mut().enumerate() {
                let numbers = |slot: &Slot| slot.of(&sharded.of(rank), sharded.size()).len();
                *bytes += slots.iter().map(|slot| slot.bytes_of(numbers(slot))).sum::<usize>();
            }
        }
        bytes.into_iter().max().unwrap_or(0)
    }

    /// Returns the bytes of the state that this rank keeps so far.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        let kept = self.state.values().flat_map(|kept| kept.slots.iter().zip(&kept.state));
        kept.map(|(slot, stored)| slot.bytes_of(stored.count())).sum()
    }

    /// True if the tensors that are updated are those of the files, and these are not the parameters of the network.
    pub(super) fn sees_files(&self, config: &DecoderConfig) -> bool {
        self.rules.all.sees_tensors() && differs(config.naming)
    }

    /// Returns the shape of the tensor in which a parameter is updated; `None` if the tensor is counted for another parameter in it.
    pub fn updated_shape(&self, name: &str, shape: &[usize], config: &DecoderConfig) -> Option<Vec<usize>> {
        match place(name, config).filter(|_| self.sees_files(config)) {
            None => Some(shape.to_vec()),
            Some((_, place)) => place.part.is_none_or(|part| part == 0).then(|| place.shape(shape)),
        }
    }

    /// Returns the division of a network's trained parameters among `ranks`.
    pub(super) fn shards(&self, net: &Decoder, config: &DecoderConfig, ranks: usize) -> Shards {
        let trained = trained_shapes(net);
        let alike = |one: &str, other: &str| self.rules.exempt(one).is_some() == self.rules.exempt(other).is_some();
        let held = if self.sees_files(config) { Held::new(&trained, config, alike) } else { Held::default() };
        let shards = Shards::new(held.shapes(trained), ranks, |parameter| self.rules.of(parameter).splits(parameter));
        Shards { held, ..shards }
    }

    /// Updates every parameter that has a gradient, after scaling the gradients by `grad_scale`. The tensors that are updated are the
    /// network's parameters; a [`Learner`](super::Learner) updates those of the files where they differ and the rule depends on it.
    pub fn update(&mut self, net: Decoder, gradients: Gradients, lr: f64, grad_scale: f64) -> Decoder {
        self.step += 1;
        let step = Step { number: self.step, lr, grad_scale };
        let (net, taken) = take(net, gradients);
        let (exempt, others): (Vec<_>, Vec<_>) = taken.into_iter().partition(|taken| self.rules.exempt(&taken.name).is_some());
        let mut weights = BTreeMap::new();
        for of_one_rule in [others, exempt] {
            self.update_together(step, of_one_rule, &mut weights);
        }
        put_back(net, weights)
    }

    /// Updates parameters of one rule, and adds their weights and shapes to `updated`.
    fn update_together(&mut self, step: Step, all: Vec<Taken>, updated: &mut BTreeMap<String, (Tensor<1>, Vec<usize>)>) {
        let Some(first) = all.first() else { return };
        let rule = self.rules.of(Parameter { name: &first.name, shape: &first.shape });
        let (mut known, mut tensors) = (Vec::new(), Vec::new());
        for Taken { name, shape, weight, gradient } in all {
            let (slots, state) = match self.state.remove(&name) {
                Some(Kept { slots, state }) => (slots, Some(state)),
                None => (rule.slots(Parameter { name: &name, shape: &shape }), None),
            };
            known.push((name, shape, slots));
            tensors.push((weight, gradient, state));
        }
        let parameters = known.iter().map(|(name, shape, _)| Parameter { name, shape });
        let trained =
            parameters.zip(tensors).map(|(parameter, (weight, gradient, state))| Trained { parameter, weight, gradient, state });
        let results = rule.update_together(step, trained.collect());
        for ((name, shape, slots), (weight, state)) in known.into_iter().zip(results) {
            if !slots.is_empty() {
                self.state.insert(name.clone(), Kept { slots, state });
            }
            updated.insert(name, (weight, shape));
        }
    }

    /// Returns the state as named tensors, such as `NAME.exp_avg` (torch's names), for a checkpoint. Of several ranks, each has
    /// only its own numbers: a [`Learner`](super::Learner) saves those of all.
    pub fn tensors(&self) -> Vec<Deferred<'_>> {
        self.tensors_by(&|_, _, own| own)
    }

    /// Returns the state as named tensors, whose numbers `gather` makes of those of this rank when they are written.
    pub(super) fn tensors_by<'a>(&'a self, gather: &'a Gather<'a>) -> Vec<Deferred<'a>> {
        let tensor = move |name: &'a String, kept: &'a Kept, index: usize| {
            let slot = &kept.slots[index];
            let values = move || gather(name, slot, kept.state.get(index).map_or_else(Vec::new, Stored::values));
            let tensor = Deferred::new(format!("{name}.{}", slot.kind), vec![slot.size], values);
            if slot.form == Form::U8 { tensor.with_dtype(Dtype::U8) } else { tensor }
        };
        let of = |(name, kept): (&'a String, &'a Kept)| (0..kept.slots.len()).map(move |index| tensor(name, kept, index));
        self.state.iter().flat_map(of).collect()
    }

    /// Returns this rank's numbers of a state tensor of a parameter; none, if it keeps none.
    pub(super) fn own_numbers(&self, parameter: &str, kind: &str) -> Vec<f32> {
        let kept = self.state.get(parameter);
        let stored = kept.and_then(|kept| kept.state.get(kept.slots.iter().position(|slot| slot.kind == kind)?));
        stored.map_or_else(Vec::new, Stored::values)
    }

    /// Restores what [`tensors`](Self::tensors) returned, for the parameters of `net` that are trained, and of each what belongs to
    /// this rank, which alone is read. A parameter without a state has had no gradient so far, as all of them before the first
    /// update: it starts afresh, as in an uninterrupted run.
    ///
    /// # Errors
    /// If there is no state at all after updates, or one tensor of a parameter's state is there without the others, has another
    /// size or dtype, holds a number that no update leaves there, or belongs to a parameter that is not trained.
    pub(super) fn restore(
        &mut self,
        step: u64,
        mut tensors: BTreeMap<String, impl Saved>,
        (net, config): (&Decoder, &DecoderConfig),
        ranks: &Ranks,
        device: &Device,
    ) -> Result<()> {
        self.state.clear();
        let nothing = tensors.is_empty();
        let mut keeps = false;
        for sharded in self.shards(net, config, ranks.size()).parameters {
            let (parameter, own) = (sharded.parameter(), sharded.of(ranks.rank()));
            let slots = self.rules.of(parameter).slots(parameter);
            keeps |= !slots.is_empty();
            let key = |slot: &Slot| format!("{}.{}", parameter.name, slot.kind);
            if slots.iter().all(|slot| !tensors.contains_key(&key(slot))) {
                continue;
            }
            let mut stored = |slot: &Slot| {
                let key = key(slot);
                let saved = tensors.remove(&key).with_context(|| format!("optimizer state: `{key}` is missing"))?;
                if saved.count() != slot.size {
                    bail!("optimizer state: `{key}` has {} elements, where {} belong", saved.count(), slot.size);
                }
                let own_numbers = slot.of(&own, parameter.size());
                let values = saved.numbers(own_numbers).with_context(|| format!("optimizer state: `{key}`"))?;
                if let Some(number) = values.iter().find(|number| !slot.may_hold(**number)) {
                    bail!(
                        "optimizer state: `{key}` holds {number}, which no update leaves there; take `optimizer` out of \
                         checkpoint.load_contents to start the state afresh"
                    );
                }
                Ok((!own.is_empty()).then(|| Stored::restored(slot.form, values, device)))
            };
            let state = slots.iter().filter_map(|slot| stored(slot).transpose()).collect::<Result<_>>()?;
            self.state.insert(sharded.name, Kept { slots, state });
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
