//! A stage as a training pipeline: its step, its validation, and its part of a checkpoint.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::{Measured, StageBatch};
use super::example::StageExample;
use super::inputs::StageInputs;
use super::memory::estimate;
use super::objective::Objective;
use super::probe::look;
use super::read::find;
use super::settings::{cut, run_settings, unused_options};
use crate::job::checkpoint_parts::{has_weights, load_learner, save_learner, state_part};
use crate::job::disk::DiskPlan;
use crate::job::inputs::RunInputs;
use crate::job::models::{is_bfloat16, learner};
use crate::job::nonfinite::report;
use crate::job::problems::Problems;
use crate::job::rank_device::rank_device;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::sources::NamedFiles;
use crate::job::unused_options::warn_of_unused;
use crate::job::{Context, Pipeline, Run, lora_settings, template_date};
use burnish_checkpoint::Best;
use burnish_config::Loaded;
use burnish_config::schema::{Device, StageConfig};
use burnish_data::Sampler;
use burnish_data::tokenizer::CHAT_TEMPLATE;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, Cut, Sequence};
use burnish_optim::learner::HUGGINGFACE;
use burnish_optim::{GradientSum, Learner, StatePart, Update, relative_changes};
use burnish_run::Output;
use burnish_tracking::Metrics;
use burnish_util::crc::IEEE;
use burnish_util::interrupt::Interrupt;

/// The training of one model by an objective.
pub struct Stage<O: Objective> {
    pub(super) config: O::Config,
    objective: O,
    pub(super) learner: Learner,
    pub(super) inputs: StageInputs<O::Example>,
    /// CRC-32, in hexadecimal, of the validation examples.
    validation_crc: String,
    state: StageState,
}

/// The state of a stage other than its weights and its position in the data.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StageState {
    /// Tokens of all steps so far.
    tokens: u64,
}

impl<O: Objective> Pipeline for Stage<O> {
    type State = StageState;

    fn validates(&self) -> bool {
        !self.inputs.val.is_empty()
    }

    fn validate(&mut self, at: &mut Context) -> Result<Metrics> {
        let batch = self.validation(self.inputs.val.len(), at.step);
        let measured = self.validated(&batch);
        self.objective.warn(&batch, &measured);
        Ok(row(measured))
    }

    fn step(&mut self, at: &mut Context) -> Result<Metrics> {
        at.record.stage().enter("update");
        let start = Instant::now();
        let rows: Vec<usize> = self.inputs.sampler.next_batch();
        let examples: Vec<&O::Example> = rows.iter().map(|&row| &self.inputs.train[row]).collect();
        let (objective, model, ranks) = (&self.objective, self.learner.model.for_passes(), &self.learner.ranks);
        let batch = batch::<O>(examples, rows, true, at.step, cut(&self.config), ranks);
        let tokens: usize = batch.sequences.iter().flatten().map(Sequence::len).sum();
        let batch_totals = objective.batch_totals(&batch, &model, ranks);
        let (gradients, results) = GradientSum::over(ranks, &batch.slices, |slice, gradients| {
            objective.pass(&batch, &batch_totals, slice, &model, Some(gradients))
        });
        let before = at.probe.as_ref().map(|_| self.learner.snapshot());
        if let Some(probe) = &at.probe {
            look(probe, (objective, &self.inputs.tokenizer), &batch, &model, &gradients, ranks)?;
        }
        // A second owner of the parameters would force the update to copy each of them.
        drop(model);
        let measured = objective.measured(&batch, batch_totals, results);
        objective.warn(&batch, &measured);
        let Measured { loss, metrics } = measured;
        let lr = self.learner.lr_at(at.step as usize - 1);
        // All ranks have the same loss and the same norm, so they take the same branch.
        let weights = self.learner.sample();
        let update = if loss.is_finite() { self.learner.update(gradients, lr)? } else { Update::skipped() };
        if let (Some(probe), Some(before)) = (&at.probe, before) {
            probe.look(|step| step.layers = before.changes(&self.learner));
        }
        let wrong = update.nonfinite.as_ref().map(|name| format!("the gradient of `{name}`"));
        if let Some(what) = wrong.or_else(|| (!loss.is_finite()).then(|| "the loss".to_owned())) {
            self.learner.ranks.first(|| {
                let sequences = batch.rows.iter().zip(&batch.sequences);
                let rows: Vec<Value> = sequences.flat_map(|(&row, sequences)| ids(row, sequences)).collect();
                report(at.settings.on_nonfinite, at.settings.dir(), at.step, &what, &rows)
            })?;
        }
        let changed = weights.map(|weights| relative_changes(&weights.changes(&self.learner)));
        let changed = changed.map(|(all, largest)| [("train/update_to_weight", all), ("train/update_to_weight_max", largest)]);
        self.state.tokens += tokens as u64;
        let seconds = start.elapsed().as_secs_f64();
        let first = [
            ("train/loss", loss),
            ("train/grad_norm", update.grad_norm),
            ("train/lr", lr),
            ("train/global_tokens", tokens as f64),
            ("train/total_tokens(B)", self.state.tokens as f64 / 1e9),
        ];
        let last = [("timing_s/step", seconds), ("perf/throughput", tokens as f64 / seconds / at.ranks.size() as f64)];
        let own = |(name, value): (&'static str, f64)| (name.to_owned(), value);
        let first = first.into_iter().chain(changed.into_iter().flatten()).map(own);
        Ok(first.chain(named("train", metrics)).chain(last.map(own)).collect())
    }

    fn headline(&self, row: &Metrics) -> (&'static str, f64) {
        ("loss", row.get("train/loss").unwrap_or(f64::NAN))
    }

    fn sampler(&mut self) -> &mut Sampler {
        &mut self.inputs.sampler
    }

    fn state(&self) -> StageState {
        self.state.clone()
    }

    fn set_state(&mut self, state: StageState) {
        self.state = state;
    }

    fn validation_crc(&self) -> Option<&str> {
        Some(&self.validation_crc)
    }

    fn save(&self, folder: &Path) -> Result<()> {
        let keys = self.config.stage();
        let contents = &keys.checkpoint.save_contents;
        save_learner(&self.learner, folder, contents, self.inputs.tokenizer.files())?;
        if let Some(template) = keys.model.custom_chat_template.as_ref().filter(|_| has_weights(contents)) {
            let path = folder.join(HUGGINGFACE).join(CHAT_TEMPLATE);
            std::fs::write(&path, template).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if has_weights(contents) { self.objective.saved(folder) } else { Ok(()) }
    }

    fn state_part(&self, part: &StatePart) -> Vec<f32> {
        state_part([&self.learner], part)
    }

    fn fingerprint(&self) -> String {
        self.learner.model.fingerprint()
    }

    fn data_crc(&self) -> String {
        format!("{} {}", crc::<O>(&self.inputs.train), self.validation_crc)
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        let contents = &self.config.stage().checkpoint.load_contents;
        load_learner(&mut self.learner, folder, contents, "checkpoint.load_contents")
    }

    fn announce(&self, at: &Context) {
        let (train, val) = (self.inputs.train.len(), self.inputs.val.len());
        let model = &at.settings.model;
        let val = if val == 0 { "no".to_owned() } else { val.to_string() };
        tracing::info!("{model}; {train} training and {val} validation examples; {} steps", at.total_steps());
        if !has_weights(&self.config.stage().checkpoint.save_contents) {
            tracing::warn!(
                "checkpoint.save_contents has no `model`: such checkpoints can neither be exported nor resumed exactly"
            );
        }
    }
}

impl<O: Objective> Stage<O> {
    /// Returns a batch of the first `count` validation examples, after a step.
    fn validation(&self, count: usize, step: u64) -> StageBatch<'_, O::Example> {
        let examples = self.inputs.val.iter().take(count).collect();
        batch::<O>(examples, (0..count).collect(), false, step, cut(&self.config), &self.learner.ranks)
    }

    /// Returns the result of a pass without gradients.
    fn validated(&self, batch: &StageBatch<O::Example>) -> Measured {
        let (model, ranks) = (self.learner.model.inference(), &self.learner.ranks);
        let batch_totals = self.objective.batch_totals(batch, &model, ranks);
        let results = batch.over_slices(ranks, |slice| self.objective.pass(batch, &batch_totals, slice, &model, None));
        self.objective.measured(batch, batch_totals, results)
    }

    /// Checks, before the first step, that validation reports the metric that selects the best step. One example usually has the
    /// metric; the others are tried only if it does not. The results themselves are not reported.
    fn check_watched(&self, metric: &str) -> Result<()> {
        let reports = |count| Best::value_of(metric, row(self.validated(&self.validation(count, 0))).iter());
        reports(1).or_else(|_| reports(self.inputs.val.len())).map(drop)
    }
}

/// Builds everything that the run of a stage needs and finds the checkpoint that it resumes from. The holder of `interrupt` can
/// ask the run to stop.
///
/// # Errors
/// If a setting, a file or a checkpoint does not fit; the run then does not start.
pub fn start<O: Objective>(
    mut loaded: Loaded<O::Config>,
    output: &Output,
    interrupt: Interrupt,
    ranks: Ranks,
) -> Result<Run<Stage<O>>> {
    // The ranks continue together after each of the two calls, so an error of one rank becomes an error of all.
    let trainer = loaded.config.stage().trainer;
    ranks.group().set_patience(Duration::from_secs(trainer.nccl_timeout));
    let device = rank_device(trainer.device, &ranks);
    let (inputs, model, ignored) = ranks.agree(open::<O>(&mut loaded, device, &ranks))?;
    let named = NamedFiles::new(&mut loaded.config, &loaded.tree);
    let sources = ranks.first(|| ranks.at_work(|| named.checksums()))?;
    let stage = stage::<O>(loaded.config, inputs, model, &ranks)?;
    let (config, inputs) = (&stage.config, &stage.inputs);
    let mut settings = run_settings(config, inputs.sampler.batches_per_epoch(), inputs.total_steps);
    settings.model = format!("{}: {}", config.stage().model.path, stage.learner.model.size());
    (settings.compared.ignored, settings.compared.sources) = (ignored, sources);
    if let Some(metric) = &settings.watched.metric {
        stage.check_watched(metric)?;
    }
    Run::start(stage, settings, &loaded.tree, output, interrupt, ranks)
}

/// Builds the loss and the optimizer. Collective.
///
/// # Errors
/// If a file cannot be read or does not fit.
pub(super) fn stage<O: Objective>(
    config: O::Config,
    inputs: StageInputs<O::Example>,
    model: CausalLm,
    ranks: &Ranks,
) -> Result<Stage<O>> {
    let build = || {
        let objective = O::build(&config, &inputs, &model, ranks)?;
        let keys = config.stage().optim;
        Ok((objective, learner(model, "optim", &keys.optim(), keys.clip_grad, inputs.total_steps, ranks)?))
    };
    let (objective, learner) = ranks.agree(build())?;
    let validation_crc = crc::<O>(&inputs.val);
    Ok(Stage { config, objective, learner, inputs, validation_crc, state: StageState::default() })
}

/// Loads the initial model.
///
/// # Errors
/// If its weights cannot be read or do not fit.
pub(super) fn initial_model<O: Objective>(
    config: &O::Config,
    inputs: &StageInputs<O::Example>,
    device: &burn::tensor::Device,
) -> Result<CausalLm> {
    let keys = config.stage();
    let bfloat16 = is_bfloat16(keys.model.dtype, keys.trainer.device, device);
    let model = O::model(config, device)?.computing(bfloat16, keys.model.enable_gradient_checkpointing);
    let model = O::prepared(config, inputs, model)?;
    lora_settings::adapt(model, &keys.model.lora(), keys.model.path.as_path(), keys.trainer.seed)
}

/// Reads the inputs and the initial model; also returns the settings without effect.
fn open<O: Objective>(
    loaded: &mut Loaded<O::Config>,
    device: Device,
    ranks: &Ranks,
) -> Result<(StageInputs<O::Example>, CausalLm, Vec<String>)> {
    let RunInputs { weights, device, inputs } = find::<O>(loaded, device)?;
    let config = &loaded.config;
    let keys = config.stage();
    let sharding = ShardingPlan::new(ranks, keys.trainer.gradient_slices, &keys.trainer.resume());
    let ignored = warn_of_unused::<O::Config>(&loaded.tree, &unused_options::<O>(config, &sharding)?)?;
    let memory = estimate::<O>(config, &inputs, &sharding)?;
    let mut problems = Problems::default();
    problems.note(memory.check_fits());
    let plan = run_settings(config, inputs.sampler.batches_per_epoch(), inputs.total_steps);
    let disk = DiskPlan::new(&plan, memory.checkpoint_bytes(), !inputs.val.is_empty());
    problems.note(disk.check());
    problems.end()?;
    tracing::info!("checkpoints: {}", disk.describe());
    template_date::note(inputs.tokenizer.date(), &mut loaded.tree);
    if weights.are_missing() {
        // Without this check, the run would fail only after its models are loaded.
        O::decoder_in_files(config)?;
        O::describe(config, &inputs)?;
        let mut settings = run_settings(config, inputs.sampler.batches_per_epoch(), inputs.total_steps);
        settings.compared.ignored = ignored.clone();
        settings.resumed_step(&loaded.tree)?;
    }
    weights.fetch(&mut loaded.config)?;
    let model = initial_model::<O>(&loaded.config, &inputs, &device)?;
    Ok((inputs, model, ignored))
}

/// Returns the examples of a batch, cut into slices by their lengths.
pub(super) fn batch<'a, O: Objective>(
    examples: Vec<&'a O::Example>,
    rows: Vec<usize>,
    training: bool,
    step: u64,
    cut: Cut,
    ranks: &Ranks,
) -> StageBatch<'a, O::Example> {
    let sequences: Vec<Vec<Sequence>> = examples.iter().map(|example| example.sequences()).collect();
    let lengths: Vec<usize> = sequences.iter().map(|own| own.iter().map(Sequence::len).sum()).collect();
    let groups: Vec<usize> = (0..examples.len()).collect();
    let slices = ranks.slices().cut(&lengths, &groups);
    StageBatch { examples, sequences, rows, training, step, cut, slices }
}

/// Returns the metrics of a validation.
fn row(Measured { loss, metrics }: Measured) -> Metrics {
    [("val/loss".to_owned(), loss)].into_iter().chain(named("val", metrics)).collect()
}

/// Adds a prefix to the names of metrics.
fn named(prefix: &str, metrics: Metrics) -> impl Iterator<Item = (String, f64)> {
    metrics.into_iter().map(move |(name, value)| (format!("{prefix}/{name}"), value))
}

/// Returns the ids of an example's sequences, for the dump of a step that is not finite.
fn ids(row: usize, sequences: &[Sequence]) -> Vec<Value> {
    let line = |sequence: &Sequence| {
        let ids = [sequence.prompt, sequence.response].concat();
        json!({"example": row, "ids": ids})
    };
    sequences.iter().map(line).collect()
}

/// Returns the CRC-32, in hexadecimal, of some examples: their ids and the other values that the loss reads.
fn crc<O: Objective>(examples: &[O::Example]) -> String {
    let of_ids = |crc, ids: &[u32]| ids.iter().fold(crc, |crc, id| IEEE.extend(crc, &id.to_le_bytes()));
    let of_example = |crc, example: &O::Example| {
        let sequences = example.sequences();
        let crc = sequences.iter().flat_map(|one| [one.prompt, &[u32::MAX], one.response]).fold(crc, of_ids);
        example.targets().iter().fold(crc, |crc, target| IEEE.extend(crc, &target.to_le_bytes()))
    };
    format!("{:08x}", examples.iter().fold(0, of_example))
}
