//! Supervised fine-tuning: `trainer sft`. The loss is −Σ log π(token) over response tokens / their number in the whole batch (as
//! in verl's SFT trainer), with one AdamW update per batch.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sft_dry_run;
use super::sft_inputs::{Inputs, cut, run_settings, unused_options};
use crate::config::{Loaded, SftConfig};
use crate::data::tokenizer::CHAT_TEMPLATE;
use crate::data::{Sampler, SftExample, Tokenizer};
use crate::job::checkpoint_parts::{has_weights, load_learner, save_learner};
use crate::job::hub_names::{self, Weights};
use crate::job::models::{learner, model_init, open_device};
use crate::job::nonfinite::report;
use crate::job::optim_choices::optim_choices;
use crate::job::unused_options::warn_of_unused;
use crate::job::{Context, Pipeline, Run, adapter, template_date};
use crate::model::token_stats::TokenGrads;
use crate::model::{CausalLm, Gradients, Sequence};
use crate::optim::learner::HUGGINGFACE;
use crate::optim::{Learner, Update};
use crate::run::Output;
use crate::tracking::{self, Metrics};
use crate::util::choice::Choice;
use crate::util::interrupt::Interrupt;

/// Returns every name that the registries know, for the configuration of a supervised run.
pub fn choices() -> Vec<Choice> {
    optim_choices!("optim").chain(tracking::choices()).collect()
}

/// The supervised fine-tuning of one model.
pub struct Sft {
    config: SftConfig,
    learner: Learner,
    tokenizer: Tokenizer,
    train: Vec<SftExample>,
    val: Vec<SftExample>,
    sampler: Sampler,
}

/// The empty state of supervised runs: a step changes only the model and the position in the data.
#[derive(Clone, Serialize, Deserialize)]
pub struct NoState {}

impl Pipeline for Sft {
    type State = NoState;

    fn validates(&self) -> bool {
        !self.val.is_empty()
    }

    fn validate(&mut self, _at: &mut Context) -> Result<Metrics> {
        Ok([("val/loss", self.loss(&self.val))].into_iter().collect())
    }

    fn step(&mut self, at: &mut Context) -> Result<Metrics> {
        at.record.stage().enter("update");
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
        let lr = self.learner.lr_at(at.step as usize - 1);
        let update = if loss.is_finite() { self.learner.update(gradients, lr) } else { Update::skipped() };
        let wrong = update.nonfinite.as_ref().map(|name| format!("the gradient of `{name}`"));
        if let Some(what) = wrong.or_else(|| (!loss.is_finite()).then(|| "the loss".to_owned())) {
            let rows: Vec<Value> = batch.iter().map(|&i| json!({"example": i, "ids": self.train[i].ids})).collect();
            report(at.settings.on_nonfinite, at.settings.dir(), at.step, &what, &rows)?;
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

    fn headline(&self, row: &Metrics) -> (&'static str, f64) {
        ("loss", row.get("train/loss").unwrap_or(f64::NAN))
    }

    fn sampler(&mut self) -> &mut Sampler {
        &mut self.sampler
    }

    fn state(&self) -> NoState {
        NoState {}
    }

    fn set_state(&mut self, _state: NoState) {}

    fn save(&self, folder: &Path) -> Result<()> {
        let contents = &self.config.checkpoint.save_contents;
        save_learner(&self.learner, folder, contents, self.tokenizer.files())?;
        if let Some(template) = self.config.model.custom_chat_template.as_ref().filter(|_| has_weights(contents)) {
            let path = folder.join(HUGGINGFACE).join(CHAT_TEMPLATE);
            std::fs::write(&path, template).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        load_learner(&mut self.learner, folder, &self.config.checkpoint.load_contents, "checkpoint.load_contents")
    }

    fn announce(&self, at: &Context) {
        tracing::info!(
            "{}; {} training and {} validation examples; {} steps",
            at.settings.model,
            self.train.len(),
            self.val.len(),
            at.total_steps()
        );
        if !has_weights(&self.config.checkpoint.save_contents) {
            tracing::warn!(
                "checkpoint.save_contents has no `model`: such checkpoints can neither be exported nor resumed as they were"
            );
        }
    }
}

/// Builds everything that a supervised run needs and finds the checkpoint that it resumes from. The holder of `interrupt` can ask
/// the run to stop.
///
/// # Errors
/// If a setting, a file or a checkpoint does not fit; nothing has been trained then.
pub fn start(mut loaded: Loaded<SftConfig>, output: &Output, interrupt: Interrupt) -> Result<Run<Sft>> {
    hub_names::find(&mut loaded, Weights::Loaded)?;
    let config = loaded.config;
    let device = open_device(config.trainer.device)?;
    warn_of_unused::<SftConfig>(&loaded.tree, &unused_options(&config)?)?;
    let inputs = Inputs::read(&config)?;
    sft_dry_run::estimate(&config, &inputs)?.check_fits()?;
    let Inputs { tokenizer, train, val, sampler, total_steps } = inputs;
    template_date::note(tokenizer.date(), &mut loaded.tree);
    let (path, init) = (config.model.path.as_path(), model_init(config.model.init, config.trainer.seed));
    let model = CausalLm::load(path, init, &device).context("model.path")?;
    let bfloat16 = config.model.dtype.is_bfloat16(config.trainer.device);
    let model = model.computing(bfloat16, config.model.enable_gradient_checkpointing);
    let model = adapter::adapt(model, &config.model.lora(), path, config.trainer.seed)?;
    let learner = learner(model, "optim", &config.optim.optim(), config.optim.clip_grad, total_steps)?;
    let mut settings = run_settings(&config, sampler.batches_per_epoch(), total_steps);
    settings.model = format!("{}: {}", config.model.path, learner.model.size());
    let sft = Sft { config, learner, tokenizer, train, val, sampler };
    Run::start(sft, settings, &loaded.tree, output, interrupt)
}

impl Sft {
    /// The mean loss, in nats, over the response tokens of some examples.
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
}

/// An example in the form that the model takes: the first token is given, all others are predicted, and those in the mask are
/// learnt.
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

    /// The weight of each predicted token in the loss: 1 / `learnt` for learnt tokens, 0 for the others.
    fn weights(&self, learnt: usize) -> impl Iterator<Item = f32> + use<'a> {
        self.loss_mask.iter().map(move |&l| if l { 1.0 / learnt as f32 } else { 0.0 })
    }
}
