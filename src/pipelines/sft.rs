//! Supervised fine-tuning: `trainer sft`. Loss = −Σ log π(token) over response tokens / their number in the whole batch
//! (verl's SFT trainer); one AdamW update per batch.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::checkpoint::{Checkpoints, step_of};
use crate::config::schema::Init;
use crate::config::{Loaded, SftConfig};
use crate::data::{Sampler, SamplerState, SftExample, SftOptions, Tokenizer, load_sft, take_samples};
use crate::model::token_stats::TokenGrads;
use crate::model::{self, CausalLm, Cut, Gradients, Sequence};
use crate::optim::{AdamW, AdamWConfig, Learner, Schedule, schedule};
use crate::tracking::{Metrics, Progress, Session, Tracker, Trackers};
use crate::trainer::{check_model, check_step, find_checkpoint, open_device, truncation};
use crate::util::fs::{read_json, write_json};

/// The names that registries give to keys of the configuration, for its validation.
pub fn choices() -> Vec<(&'static str, Vec<String>)> {
    let schedules = schedule::names().into_iter().map(str::to_owned).collect();
    let trackers = crate::tracking::TRACKERS.iter().map(|t| t.name.to_owned()).collect();
    vec![("optim.lr_scheduler", schedules), ("trainer.logger", trackers)]
}

/// A supervised run, set up from its configuration by [`Sft::new`].
pub struct Sft {
    config: SftConfig,
    learner: Learner,
    tokenizer: Tokenizer,
    train: Vec<SftExample>,
    val: Vec<SftExample>,
    sampler: Sampler,
    trackers: Trackers,
    progress: Progress,
    checkpoints: Checkpoints,
    step: u64,
    total_steps: u64,
}

const DATA: &str = "data.json";

impl Sft {
    /// Trains to the last step.
    pub fn run(mut self) -> Result<()> {
        self.progress.start(self.step, self.total_steps);
        while self.step < self.total_steps {
            self.step += 1;
            let mut metrics = self.train_step();
            if self.is_due(self.config.trainer.test_freq) {
                metrics.set("val/loss", self.loss(&self.val));
            }
            self.trackers.log(self.step, &metrics)?;
            let loss = metrics.get("train/loss").unwrap_or(f64::NAN);
            self.progress.update(self.step, ("loss", loss), metrics.get("perf/throughput").unwrap_or(0.0));
            if self.is_due(self.config.trainer.save_freq) {
                self.save()?;
            }
        }
        self.progress.finish();
        self.trackers.finish()
    }

    fn train_step(&mut self) -> Metrics {
        let start = Instant::now();
        let batch: Vec<usize> = self.sampler.next_batch();
        let examples: Vec<Example> = batch.iter().map(|&i| Example::of(&self.train[i])).collect();
        let learnt: usize = examples.iter().map(|e| e.learnt).sum();
        let lengths: Vec<usize> = examples.iter().map(|e| e.sequence.len()).collect();
        let tokens: usize = lengths.iter().sum();
        let (mut loss, mut gradients) = (0.0, Gradients::default());
        for micro in Cut::Sequences(self.config.data.micro_batch_size_per_gpu).micro_batches(&lengths) {
            let sequences: Vec<Sequence> = micro.iter().map(|&i| examples[i].sequence).collect();
            let weights: Vec<f32> = micro.iter().flat_map(|&i| examples[i].weights(learnt)).collect();
            self.learner.model.backward(&sequences, 1.0, &mut gradients, |stats| {
                loss -= stats.log_prob.iter().zip(&weights).map(|(lp, w)| *lp as f64 * *w as f64).sum::<f64>();
                TokenGrads { log_prob: weights.iter().map(|w| -w).collect(), entropy: vec![0.0; weights.len()] }
            });
        }
        let lr = self.learner.lr_at(self.step as usize - 1);
        let update = self.learner.update(gradients, lr);
        let seconds = start.elapsed().as_secs_f64();
        let metrics = [
            ("train/loss", loss),
            ("train/grad_norm", update.grad_norm),
            ("train/lr", lr),
            ("train/global_tokens", tokens as f64),
            ("timing_s/step", seconds),
            ("perf/throughput", tokens as f64 / seconds),
        ];
        metrics.into_iter().collect()
    }

    /// Mean loss, in nats, over the response tokens of some examples.
    fn loss(&self, examples: &[SftExample]) -> f64 {
        let model = self.learner.model.frozen();
        let examples: Vec<Example> = examples.iter().map(Example::of).collect();
        let learnt: usize = examples.iter().map(|e| e.learnt).sum();
        let lengths: Vec<usize> = examples.iter().map(|e| e.sequence.len()).collect();
        let mut loss = 0.0;
        for micro in Cut::Sequences(self.config.data.micro_batch_size_per_gpu).micro_batches(&lengths) {
            let sequences: Vec<Sequence> = micro.iter().map(|&i| examples[i].sequence).collect();
            let weights = micro.iter().flat_map(|&i| examples[i].weights(learnt));
            let stats = model.token_stats(&sequences, 1.0);
            loss -= stats.log_prob.iter().zip(weights).map(|(lp, w)| *lp as f64 * w as f64).sum::<f64>();
        }
        loss
    }

    /// Whether something done every `freq` steps is due: at the last step always, as in verl's SFT trainer.
    fn is_due(&self, freq: i64) -> bool {
        self.step == self.total_steps || freq > 0 && self.step.is_multiple_of(freq as u64)
    }

    fn save(&self) -> Result<()> {
        self.checkpoints.save(self.step, |folder| {
            self.learner.save(folder, true, true, self.tokenizer.files())?;
            write_json(&folder.join(DATA), &self.sampler.state())
        })?;
        Ok(())
    }

    /// Builds everything a run needs and finds the checkpoint it goes on from.
    pub fn new(loaded: Loaded<SftConfig>, progress: Progress) -> Result<Self> {
        let config = loaded.config;
        let device = open_device(config.trainer.device)?;
        let tokenizer_folder = config.data.tokenizer.as_ref().unwrap_or(&config.model.partial_pretrain);
        let tokenizer =
            Tokenizer::load(tokenizer_folder.as_path()).context("data.tokenizer (by default model.partial_pretrain)")?;
        let (train, val) = (examples(&config, &tokenizer, true)?, examples(&config, &tokenizer, false)?);
        let init = match config.model.init {
            Init::Pretrained => model::Init::Pretrained,
            Init::Random => model::Init::Random { seed: config.trainer.seed },
        };
        let model = CausalLm::load(config.model.partial_pretrain.as_path(), init, &device).context("model.partial_pretrain")?;
        let longest = train.iter().chain(&val).map(|e| e.ids.len()).max().unwrap_or(0);
        check_model(&model, &tokenizer, longest, "data.max_length")
            .with_context(|| format!("the model in {} and the tokenizer in {tokenizer_folder}", config.model.partial_pretrain))?;
        let seed = config.data.seed.unwrap_or(config.trainer.seed);
        let mut sampler = Sampler::new(train.len(), config.data.train_batch_size, config.data.shuffle, seed, true)
            .context("data.train_batch_size")?;
        let total_steps = match config.trainer.total_training_steps {
            Some(steps) => steps as u64,
            None => sampler.batches_per_epoch() * config.trainer.total_epochs as u64,
        };
        let optim = &config.optim;
        let mut learner = Learner {
            model: model.trainable(),
            optimizer: AdamW::new(AdamWConfig {
                beta1: optim.betas[0],
                beta2: optim.betas[1],
                eps: optim.eps,
                weight_decay: optim.weight_decay,
            }),
            schedule: Schedule {
                kind: schedule::find(&optim.lr_scheduler).context("unknown lr_scheduler")?,
                warmup_steps: schedule::warmup_steps(-1, optim.lr_warmup_steps_ratio, total_steps as usize),
                total_steps: total_steps as usize,
                min_lr_ratio: optim.min_lr_ratio,
                num_cycles: optim.num_cycles,
            },
            lr: optim.lr,
            grad_clip: optim.clip_grad,
        };
        let checkpoints = Checkpoints::new(config.trainer.default_local_dir.as_path(), config.trainer.max_ckpt_to_keep)?;
        let resume = find_checkpoint(&checkpoints, config.trainer.resume_mode, config.trainer.resume_from_path.as_ref())?;
        let mut step = 0;
        if let Some(folder) = &resume {
            step = restore(folder, &mut learner, &mut sampler, total_steps)
                .with_context(|| format!("cannot resume from {}", folder.display()))?;
            tracing::info!("resumed from {}", folder.display());
        }
        // Last: opening a metrics file drops the rows that this run will write again.
        let trackers = Trackers::open(
            &config.trainer.logger,
            &Session {
                project: config.trainer.project_name.clone(),
                experiment: config.trainer.experiment_name.clone(),
                dir: config.trainer.default_local_dir.as_path().to_owned(),
                resumed_step: resume.is_some().then_some(step),
                config_json: serde_json::to_string(&config)?,
                progress: progress.clone(),
            },
        )?;
        tracing::info!(
            "{}: {} parameters; {} training and {} validation examples; {total_steps} steps",
            config.model.partial_pretrain,
            learner.model.num_parameters(),
            train.len(),
            val.len()
        );
        Ok(Self { config, learner, tokenizer, train, val, sampler, trackers, progress, checkpoints, step, total_steps })
    }
}

/// Goes on from a checkpoint; its step.
fn restore(folder: &Path, learner: &mut Learner, sampler: &mut Sampler, total_steps: u64) -> Result<u64> {
    let step = step_of(folder)?;
    check_step(step, total_steps)?;
    learner.load(folder, true, true)?;
    sampler.restore(read_json::<SamplerState>(&folder.join(DATA))?)?;
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

fn examples(config: &SftConfig, tokenizer: &Tokenizer, training: bool) -> Result<Vec<SftExample>> {
    let data = &config.data;
    let keys = |keys: &Option<crate::config::schema::OneOrMany<String>>| keys.as_ref().map(|k| k.0.clone()).unwrap_or_default();
    let options = SftOptions {
        prompt_key: data.prompt_key.clone(),
        prompt_dict_keys: keys(&data.prompt_dict_keys),
        response_key: data.response_key.clone(),
        response_dict_keys: keys(&data.response_dict_keys),
        max_length: data.max_length,
        truncation: truncation(data.truncation),
        chat_kwargs: Default::default(),
    };
    let (key, files, max) = match training {
        true => ("data.train_files", &data.train_files, data.train_max_samples),
        false => ("data.val_files", &data.val_files, data.val_max_samples),
    };
    let files: Vec<PathBuf> = files.iter().map(|f| f.as_path().to_owned()).collect();
    let examples = load_sft(&files, tokenizer, &options).context(key)?;
    let seed = data.seed.unwrap_or(config.trainer.seed);
    Ok(take_samples(examples, usize::try_from(max).ok(), training && data.shuffle, seed))
}
