//! The estimated time of a stage's step on a GPU, from the lengths of its examples.

use anyhow::Result;

use super::inputs::Inputs;
use super::objective::Objective;
use super::settings::cut;
use crate::job::adapter;
use crate::job::division::Division;
use crate::job::models::optimizer;
use crate::job::time_estimate::{Costs, TimeEstimate, Tokens};
use burnish_config::schema::{Device, StageConfig};
use burnish_model::{Cut, Sequence};

/// Estimates the time of a step in one of the processes, a mean over the batches of an epoch; `None` on a CPU. Left out: passes over a
/// whole batch that some losses need before its micro-batches, and what the host does.
///
/// # Errors
/// A configuration of a model that does not fit.
pub(super) fn of_step<O: Objective>(
    config: &O::Config,
    inputs: &Inputs<O::Example>,
    division: &Division,
) -> Result<Option<TimeEstimate>> {
    let keys = config.stage();
    if keys.trainer.device == Device::Cpu {
        return Ok(None);
    }
    let (decoder, path) = (O::decoder(config)?, keys.model.path.as_path());
    let adapter = adapter::adapter(&keys.model.lora(), &decoder, path, keys.trainer.seed)?;
    let costs = Costs::of(&decoder, adapter.as_ref(), keys.model.enable_gradient_checkpointing);
    let (cut, mut sampler) = (cut(config), inputs.sampler.clone());
    // One epoch suffices, because every later one has the same examples.
    let batches = sampler.batches_per_epoch().min(inputs.total_steps).max(1);
    let each = (0..batches).map(|_| tokens::<O>(sampler.next_batch().iter().map(|&i| &inputs.train[i]), cut));
    let all = each.fold(Tokens::default(), |sum, batch| sum.and(batch));
    let mut tokens = all.part(batches as usize * division.ranks);
    tokens.micro_batches = tokens.micro_batches.max(division.of_rank(division.slices) as f64);
    let mut time = TimeEstimate::new("a step", keys.model.dtype.is_bfloat16(keys.trainer.device), division.ranks);
    if let Some((name, decoder)) = O::beside(config)? {
        time.pass(name, &Costs::of(&decoder, None, false), tokens);
    }
    time.update("update", &costs, tokens, 1, &optimizer("optim", &keys.optim.optim())?, &[]);
    Ok(Some(time))
}

/// The tokens of a pass over some examples.
fn tokens<'a, O: Objective<Example: 'a>>(examples: impl Iterator<Item = &'a O::Example>, cut: Cut) -> Tokens {
    let sequences: Vec<Vec<Sequence>> = examples.map(O::sequences).collect();
    let of = |sequence: &Sequence| Tokens::of(sequence.len(), sequence.response.len());
    let all = sequences.iter().flatten().map(of).fold(Tokens::default(), Tokens::and);
    Tokens { micro_batches: cut.micro_batches_of(&sequences).len() as f64, ..all }
}
