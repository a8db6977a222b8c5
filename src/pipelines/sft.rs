//! Supervised fine-tuning: `trainer sft`. Loss = −Σ log π(token) over response tokens / their number in the whole batch
//! (verl's SFT trainer); one AdamW update per batch.

use std::path::Path;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sft_inputs::{Inputs, cut, unused_options};
use crate::checkpoint::{CONFIG_FILE, Checkpoints, check_changes, step_of};
use crate::config::schema::{CheckpointContent, Frequency};
use crate::config::{Loaded, SftConfig, Tree};
use crate::data::tokenizer::CHAT_TEMPLATE;
use crate::data::{Sampler, SamplerState, SftExample, Tokenizer};
use crate::job::unused_options::warn_of_unused;
use crate::model::token_stats::TokenGrads;
use crate::model::{CausalLm, Gradients, Sequence};
use crate::optim::learner::HUGGINGFACE;
use crate::optim::{Learner, Update, schedule};
use crate::run::{Output, Record, RunInfo, Watched};
use crate::tracking::{Metrics, Progress, Session};
use crate::trainer::{
    check_part, check_step, find_checkpoint, goes_on, has_weights, learner, load_learner, loaded as loaded_parts, model_init,
    note_finished, open_device, report_length, report_nonfinite, save_learner,
};
use crate::trainer::{lora, template_date};
use crate::util::fs::{read_json, write_json};
use crate::util::interrupt::{Interrupt, Interrupted};

/// The names that registries give to keys of the configuration, for its validation.
pub fn choices() -> Vec<(&'static str, Vec<String>)> {
    let schedules = schedule::names().into_iter().map(str::to_owned).collect();
    let trackers = crate::tracking::TRACKERS.iter().map(|t| t.name.to_owned()).collect();
    vec![("optim.lr_scheduler_type", schedules), ("trainer.logger", trackers)]
}

/// A supervised run, set up from its configuration by [`Sft::new`].
pub struct Sft {
    config: SftConfig,
    /// The resolved configuration, for checkpoints.
    config_yaml: String,
    learner: Learner,
    tokenizer: Tokenizer,
    train: Vec<SftExample>,
    val: Vec<SftExample>,
    sampler: Sampler,
    record: Record,
    progress: Progress,
    checkpoints: Checkpoints,
    /// The step of the last checkpoint in the run's folder that this process saved or resumed from.
    saved: Option<u64>,
    step: u64,
    total_steps: u64,
}

const DATA: &str = "data.json";
const STATE: &str = "trainer_state.json";

/// What a checkpoint has beside weights, optimizer and the position in the data.
#[derive(Serialize, Deserialize)]
struct State {
    total_steps: u64,
}

impl Sft {
    /// Trains to the last step.
    ///
    /// # Errors
    /// What a step fails with, and [`Interrupted`] once `interrupt` was asked: the step is finished and saved.
    pub fn run(mut self, interrupt: Interrupt) -> Result<()> {
        self.record.heed(&interrupt);
        let result = self.train(&interrupt);
        let saved = self.saved.map(|step| self.checkpoints.path(step));
        self.record.end(self.step, saved.as_deref(), &result);
        result
    }

    fn train(&mut self, interrupt: &Interrupt) -> Result<()> {
        self.progress.start(self.step, self.total_steps);
        while self.step < self.total_steps {
            if interrupt.asked() {
                return self.stop();
            }
            self.step += 1;
            self.record.stage().step(self.step);
            self.record.stage().enter("update");
            let mut metrics = self.train_step()?;
            if !self.val.is_empty() && self.is_due(self.config.trainer.test_freq) {
                self.record.stage().enter("testing");
                metrics.set("val/loss", self.loss(&self.val));
            }
            let loss = metrics.get("train/loss").unwrap_or(f64::NAN);
            self.progress.update(self.step, ("loss", loss), metrics.get("perf/throughput").unwrap_or(0.0));
            self.record.log(self.step, metrics);
            if self.is_due(self.config.trainer.save_freq) {
                self.record.stage().enter("save_checkpoint");
                self.save()?;
            }
        }
        Ok(())
    }

    /// Ends a run that was asked to stop.
    fn stop(&mut self) -> Result<()> {
        let step = self.step;
        if step > 0 && self.saved != Some(step) {
            self.save()?;
        }
        let how = match step {
            0 => "the same command starts again".to_owned(),
            _ => goes_on(self.config.trainer.resume_mode, &self.checkpoints.path(step)),
        };
        Err(Interrupted(format!("interrupted after step {step}; {how}")).into())
    }

    fn train_step(&mut self) -> Result<Metrics> {
        let start = Instant::now();
        let batch: Vec<usize> = self.sampler.next_batch();
        let examples: Vec<Example> = batch.iter().map(|&i| Example::of(&self.train[i])).collect();
        let learnt: usize = examples.iter().map(|e| e.learnt).sum();
        let all: Vec<Sequence> = examples.iter().map(|e| e.sequence).collect();
        let tokens: usize = all.iter().map(Sequence::len).sum();
        let (mut loss, mut gradients) = (0.0, Gradients::default());
        for micro in cut(&self.config).micro_batches(&all) {
            let sequences: Vec<Sequence> = micro.iter().map(|&i| all[i]).collect();
            let weights: Vec<f32> = micro.iter().flat_map(|&i| examples[i].weights(learnt)).collect();
            self.learner.model.backward(&sequences, 1.0, None, &mut gradients, |stats| {
                loss -= stats.log_prob.iter().zip(&weights).map(|(lp, w)| *lp as f64 * *w as f64).sum::<f64>();
                let log_prob = weights.iter().map(|w| -w).collect();
                TokenGrads { log_prob, entropy: vec![0.0; weights.len()], full_kl: Vec::new() }
            });
        }
        let lr = self.learner.lr_at(self.step as usize - 1);
        let update = if loss.is_finite() { self.learner.update(gradients, lr) } else { Update::skipped() };
        let wrong = update.nonfinite.as_ref().map(|name| format!("the gradient of `{name}`"));
        if let Some(what) = wrong.or_else(|| (!loss.is_finite()).then(|| "the loss".to_owned())) {
            let rows: Vec<Value> = batch.iter().map(|&i| json!({"example": i, "ids": self.train[i].ids})).collect();
            let (trainer, step) = (&self.config.trainer, self.step);
            report_nonfinite(trainer.on_nonfinite, trainer.default_local_dir.as_path(), step, &what, &rows)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let metrics = [
            ("train/loss", loss),
            ("train/grad_norm", update.grad_norm),
            ("train/lr", lr),
            ("train/global_tokens", tokens as f64),
            ("timing_s/step", seconds),
            ("perf/throughput", tokens as f64 / seconds),
        ];
        Ok(metrics.into_iter().collect())
    }

    /// Mean loss, in nats, over the response tokens of some examples.
    fn loss(&self, examples: &[SftExample]) -> f64 {
        let model = self.learner.model.frozen();
        let examples: Vec<Example> = examples.iter().map(Example::of).collect();
        let learnt: usize = examples.iter().map(|e| e.learnt).sum();
        let all: Vec<Sequence> = examples.iter().map(|e| e.sequence).collect();
        let mut loss = 0.0;
        for micro in cut(&self.config).micro_batches(&all) {
            let sequences: Vec<Sequence> = micro.iter().map(|&i| all[i]).collect();
            let weights = micro.iter().flat_map(|&i| examples[i].weights(learnt));
            let stats = model.token_stats(&sequences, 1.0, None);
            loss -= stats.log_prob.iter().zip(weights).map(|(lp, w)| *lp as f64 * w as f64).sum::<f64>();
        }
        loss
    }

    /// Whether something done every so often is due: at the last step always, as in verl's SFT trainer.
    fn is_due(&self, frequency: Frequency) -> bool {
        self.step == self.total_steps || frequency.is_due(self.step, self.total_steps, self.sampler.batches_per_epoch())
    }

    fn save(&mut self) -> Result<()> {
        let (contents, template) = (&self.config.checkpoint.save_contents, &self.config.model.custom_chat_template);
        let (learner, tokenizer, data) = (&self.learner, self.tokenizer.files(), self.sampler.state());
        let state = State { total_steps: self.total_steps };
        let write =
            |path: &Path, text: &str| std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
        self.checkpoints.save(self.step, None, |folder| {
            save_learner(learner, folder, contents, tokenizer)?;
            if let Some(template) = template.as_ref().filter(|_| has_weights(contents)) {
                write(&folder.join(HUGGINGFACE).join(CHAT_TEMPLATE), template)?;
            }
            if contents.contains(&CheckpointContent::Extra) {
                write_json(&folder.join(DATA), &data)?;
                write_json(&folder.join(STATE), &state)?;
            }
            write(&folder.join(CONFIG_FILE), &self.config_yaml)
        })?;
        self.saved = Some(self.step);
        Ok(())
    }

    /// Builds everything a run needs and finds the checkpoint it goes on from.
    pub fn new(mut loaded: Loaded<SftConfig>, output: Output) -> Result<Self> {
        let config = loaded.config;
        let device = open_device(config.trainer.device)?;
        warn_of_unused::<SftConfig>(&loaded.tree, &unused_options(&config)?)?;
        let Inputs { tokenizer, train, val, mut sampler, total_steps } = Inputs::read(&config)?;
        template_date::note(tokenizer.date(), &mut loaded.tree);
        let init = model_init(config.model.init, config.trainer.seed);
        let model = CausalLm::load(config.model.path.as_path(), init, &device).context("model.path")?;
        let bfloat16 = config.model.dtype.is_bfloat16(config.trainer.device);
        let model = model.computing(bfloat16, config.model.enable_gradient_checkpointing);
        let model = lora::adapt(model, &config.model.lora(), config.model.path.as_path(), config.trainer.seed)?;
        let mut learner = learner(model, &config.optim.optim(), config.optim.clip_grad, total_steps)?;
        let mut checkpoints = Checkpoints::new(config.trainer.default_local_dir.as_path(), config.trainer.max_ckpt_to_keep)?;
        let resume = find_checkpoint(&mut checkpoints, config.trainer.resume_mode, config.trainer.resume_from_path.as_ref())?;
        let mut step = 0;
        if let Some(folder) = &resume {
            step = restore(folder, &loaded.tree, &config, &mut learner, &mut sampler, total_steps)
                .with_context(|| format!("cannot resume from {}", folder.display()))?;
            tracing::info!("resumed from {}", folder.display());
        }
        // Last: opening a metrics file drops the rows that this run will write again.
        let session = Session {
            project: config.trainer.project_name.clone(),
            experiment: config.trainer.experiment_name.clone(),
            run_id: String::new(),
            dir: config.trainer.default_local_dir.as_path().to_owned(),
            resumed_step: resume.is_some().then_some(step),
            total_steps,
            started: SystemTime::now(),
            config: loaded.tree.to_json(),
            python: "python3".to_owned(),
            wandb_proxy: None,
            progress: output.progress.clone(),
        };
        let info = RunInfo {
            device: config.trainer.device.to_string(),
            model: format!("{}: {}", config.model.path, learner.model.size()),
            ..RunInfo::new("sft", &config.trainer.project_name, &config.trainer.experiment_name)
                .with_settings(loaded.tree.settings())
        };
        let watched = Watched { metric: None, greater_is_better: true };
        // A command that finds nothing left to train leaves the record of the run as it is.
        let record = match step == total_steps {
            false => Record::begin(info, session, &config.trainer.logger, watched, &output)?,
            true => {
                note_finished(checkpoints.dir(), total_steps);
                Record::none(&session, watched, &output)?
            }
        };
        tracing::info!(
            "{}: {}; {} training and {} validation examples; {total_steps} steps",
            config.model.path,
            learner.model.size(),
            train.len(),
            val.len()
        );
        if !has_weights(&config.checkpoint.save_contents) {
            tracing::warn!(
                "checkpoint.save_contents has no `model`: such checkpoints can neither be exported nor resumed as they were"
            );
        }
        let saved = resume.filter(|folder| *folder == checkpoints.path(step)).map(|_| step);
        let config_yaml = loaded.tree.to_yaml();
        Ok(Self {
            config,
            config_yaml,
            learner,
            tokenizer,
            train,
            val,
            sampler,
            record,
            progress: output.progress,
            checkpoints,
            saved,
            step,
            total_steps,
        })
    }
}

/// Goes on from a checkpoint, whose settings must fit those of this run, `tree`; its step.
fn restore(
    folder: &Path,
    tree: &Tree,
    config: &SftConfig,
    learner: &mut Learner,
    sampler: &mut Sampler,
    total_steps: u64,
) -> Result<u64> {
    let (step, contents) = (step_of(folder)?, &config.checkpoint.load_contents);
    check_step(step, total_steps)?;
    check_changes(folder, tree, &loaded_parts(contents))?;
    load_learner(learner, folder, contents, "checkpoint.load_contents")?;
    let extra = contents.contains(&CheckpointContent::Extra);
    check_part("extra", extra, &folder.join(DATA), "checkpoint.load_contents")?;
    if extra {
        sampler.restore(read_json::<SamplerState>(&folder.join(DATA))?)?;
        let state = folder.join(STATE);
        // Older checkpoints do not have it.
        if state.exists() {
            report_length(read_json::<State>(&state)?.total_steps, total_steps, [&config.optim.optim()]);
        }
    }
    Ok(step)
}

/// An example as the model takes it: the first token is given, every other is predicted; some are learnt.
struct Example<'a> {
    sequence: Sequence<'a>,
    loss_mask: &'a [bool],
    learnt: usize,
}

impl<'a> Example<'a> {
    fn of(example: &'a SftExample) -> Self {
        let (prompt, response) = example.ids.split_at(1);
        let loss_mask = &example.loss_mask[1..];
        Self { sequence: Sequence { prompt, response }, loss_mask, learnt: loss_mask.iter().filter(|&&l| l).count() }
    }

    /// 1 / `learnt` at the learnt tokens.
    fn weights(&self, learnt: usize) -> impl Iterator<Item = f32> + use<'a> {
        self.loss_mask.iter().map(move |&l| if l { 1.0 / learnt as f32 } else { 0.0 })
    }
}
