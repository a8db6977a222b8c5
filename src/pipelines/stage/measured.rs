//! The times of a stage, for `--dry-run`.

use anyhow::Result;
use burn::tensor::Device;

use super::example::StageExample;
use super::inputs::StageInputs;
use super::objective::Objective;
use super::pipeline::{Stage, initial_model, stage};
use crate::job::RunSettings;
use crate::job::measure::{Measurable, StepPlan, StepSize, StepWork, TimedStep, Times, measure};
use burnish_config::schema::StageConfig;
use burnish_data::Sampler;
use burnish_distributed::Ranks;
use burnish_model::Sequence;
use burnish_tracking::Metrics;

/// The only phase of a step.
const UPDATE: &str = "update";

/// Measures steps of a stage. Collective.
///
/// # Errors
/// If the models cannot be loaded. The inner errors are those of a step.
pub(super) fn measured<O: Objective>(
    mut config: O::Config,
    mut inputs: StageInputs<O::Example>,
    settings: RunSettings,
    device: &Device,
    ranks: &Ranks,
) -> Result<Result<Times>> {
    let rows = config.stage().data.train_batch_size;
    let tokens: usize = inputs.train.iter().map(length::<O>).sum();
    let (is_free, left_out) = O::for_measuring(&mut config);
    let plan = StepPlan {
        size: StepSize { rows, tokens: 0 },
        rows_name: "examples",
        drawn_rows: rows,
        samples: 0,
        given_per_row: tokens as f64 / inputs.train.len() as f64,
        validated: inputs.val.len(),
        step: 1,
        left_out,
    };
    if is_free {
        inputs.train = inputs.sampler.next_batch().into_iter().map(|row| inputs.train[row].clone()).collect();
        inputs.val.truncate(rows);
    }
    let model = ranks.agree(initial_model::<O>(&config, &inputs, device))?;
    let mut stage = stage::<O>(config, inputs, model, ranks)?;
    stage.learner.lr = 0.0;
    Ok(measure(stage, plan, settings, device, ranks))
}

fn length<O: Objective>(example: &O::Example) -> usize {
    example.sequences().iter().map(Sequence::len).sum()
}

impl<O: Objective> Measurable for Stage<O> {
    fn resize(&mut self, size: StepSize) -> Result<()> {
        self.inputs.sampler = Sampler::new(self.inputs.train.len(), size.rows, false, 0, true)?;
        Ok(())
    }

    fn shorten_validation(&mut self, rows: usize) -> usize {
        self.inputs.val.truncate(rows);
        self.inputs.val.len()
    }

    fn passes(&self, _: &str, _: usize, _: f64) -> f64 {
        1.0
    }

    fn timed(&self, size: StepSize, row: &Metrics) -> TimedStep {
        let of = |name: &str| row.get(name).unwrap_or(0.0);
        TimedStep {
            rows: size.rows,
            limit: size.tokens,
            phases: vec![(UPDATE.to_owned(), of("timing_s/step"))],
            work: StepWork { given: of("train/global_tokens"), ..StepWork::default() },
            responses: (0, 0),
        }
    }
}
