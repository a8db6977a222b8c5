//! The memory of a run of a stage.

use anyhow::Result;

use super::example::StageExample;
use super::inputs::StageInputs;
use super::objective::Objective;
use super::settings::cut;
use crate::job::lora_settings;
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::optimizer;
use crate::job::second_model::check_adapter;
use crate::job::sharding_plan::ShardingPlan;
use burnish_config::schema::StageConfig;
use burnish_model::memory::LargestBatch;
use burnish_model::{Cut, Sequence};

/// Estimates the memory of a run from the shape of its model and the lengths of its examples.
///
/// # Errors
/// If the configuration of a model does not fit.
pub(super) fn estimate<O: Objective>(
    config: &O::Config,
    inputs: &StageInputs<O::Example>,
    sharding: &ShardingPlan,
) -> Result<MemoryEstimate> {
    let (keys, cut, mut sampler) = (config.stage(), cut(config), inputs.sampler.clone());
    let decoder = O::decoder(config)?;
    check_adapter(&keys.model.lora(), &inputs.tokenizer)?;
    let adapter = lora_settings::adapter(&keys.model.lora(), &decoder, keys.model.path.as_path(), keys.trainer.seed)?;
    // One epoch suffices, because every later one has the same examples.
    let batches = sampler.batches_per_epoch().min(inputs.total_steps);
    let trained = (0..batches).map(|_| widest::<O>(sampler.next_batch().iter().map(|&i| &inputs.train[i]), cut));
    let (trained, pieces): (Vec<LargestBatch>, Vec<usize>) = trained.unzip();
    let mut memory = MemoryEstimate::new(decoder, adapter.as_ref(), keys.trainer.device);
    memory.trained(&optimizer("optim", &keys.optim.optim())?, sharding);
    O::memory(config, &mut memory)?;
    if !inputs.val.is_empty() {
        memory.pass("validation", widest::<O>(inputs.val.iter(), cut).0);
    }
    let trained = trained.into_iter().max_by_key(|widest| widest.rows).unwrap_or_default();
    memory.update(trained, pieces.iter().any(|&pieces| pieces > 1), keys.model.enable_gradient_checkpointing);
    Ok(memory)
}

/// Returns the largest micro-batch of some examples, and the number of micro-batches.
fn widest<'a, O: Objective<Example: 'a>>(examples: impl Iterator<Item = &'a O::Example>, cut: Cut) -> (LargestBatch, usize) {
    let sequences: Vec<Vec<Sequence>> = examples.map(StageExample::sequences).collect();
    let micro_batches = cut.micro_batches_of(&sequences);
    let widths = micro_batches.iter().map(|micro| {
        let all = || micro.iter().flat_map(|&i| &sequences[i]);
        let lengths = || all().map(Sequence::len);
        LargestBatch {
            rows: lengths().sum(),
            predicted: all().map(|sequence| sequence.response.len()).sum(),
            longest: lengths().max().unwrap_or(1),
        }
    });
    (widths.max_by_key(|widest| widest.rows).unwrap_or_default(), micro_batches.len())
}
