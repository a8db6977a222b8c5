//! The settings that a stage shares with every training run, and its options without effect.

use anyhow::Result;

use super::objective::Objective;
use crate::job::checkpoint_parts::loaded;
use crate::job::models::rate_follows_length;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::unused_options::{UnusedOption, table};
use crate::job::unused_schedule::{of_optimizer, of_schedule, optimizer_keys, schedule_keys};
use crate::job::{EarlyStopping, RunSettings, lora_settings};
use burnish_checkpoint::RunFacts;
use burnish_config::schema::CheckpointContent::Extra;
use burnish_config::schema::{ModelInit, StageConfig, StageKeys, StageTrainerConfig, TrainerResumeMode};
use burnish_model::Cut;
use burnish_run::WatchedMetric;

/// Returns the settings that a stage shares with every training run; the size of the model is not known yet.
pub(super) fn run_settings<C: StageConfig>(config: &C, steps_per_epoch: u64, total_steps: u64) -> RunSettings {
    let StageKeys { model, optim, checkpoint, trainer, data: _ } = config.stage();
    RunSettings {
        kind: C::NAME,
        project: trainer.project_name.clone(),
        experiment: trainer.experiment_name.clone(),
        device: trainer.device.to_string(),
        model: model.path.to_string(),
        loggers: trainer.logger.to_vec(),
        python: "python3".to_owned(),
        resume: trainer.resume(),
        max_to_keep: trainer.max_ckpt_to_keep,
        save_freq: trainer.save_freq,
        saves_best: trainer.save_best && trainer.save_freq.is_some(),
        test_freq: trainer.test_freq,
        eval_delay: trainer.eval_delay,
        ends_validated: true,
        on_nonfinite: trainer.on_nonfinite,
        on_alarm: trainer.on_alarm,
        val_before_train: false,
        val_only: false,
        watched: watched(trainer),
        early_stopping: trainer
            .early_stopping_patience
            .map(|patience| EarlyStopping { patience: patience as u64, threshold: trainer.early_stopping_threshold }),
        saves_extra: checkpoint.save_contents.contains(&Extra),
        loads_extra: checkpoint.load_contents.contains(&Extra),
        load_contents_key: "checkpoint.load_contents",
        compared: RunFacts { loaded: loaded(&checkpoint.load_contents), ..RunFacts::default() },
        rate_follows_length: rate_follows_length(&optim.optim()),
        steps_per_epoch,
        total_steps,
        gradient_slices: trainer.gradient_slices,
        balance_batch: trainer.balance_batch,
    }
}

/// Returns the metric that selects the best step. As in transformers, a lower value is better if the name ends in `loss`.
fn watched(trainer: &StageTrainerConfig) -> WatchedMetric {
    let metric = trainer.metric_for_best_model.clone();
    let is_loss = metric.as_ref().is_some_and(|metric| metric.ends_with("loss"));
    WatchedMetric { metric, greater_is_better: trainer.greater_is_better.unwrap_or(!is_loss) }
}

/// Returns the options without effect.
///
/// # Errors
/// If the schedule or another name of the stage does not exist.
pub(super) fn unused_options<O: Objective>(config: &O::Config, sharding: &ShardingPlan) -> Result<Vec<UnusedOption>> {
    let StageKeys { data, model, optim, trainer, checkpoint: _ } = config.stage();
    let dynamic = data.use_dynamic_bsz;
    let lora = model.lora();
    let new_adapter = lora.rank > 0 && lora.adapter_path.is_none();
    let draws = data.shuffle && data.seed.is_none() || model.init == ModelInit::Random || new_adapter || O::draws(config)?;
    let unvalidated = (data.val_files.is_none(), "there is no validation, data.val_files is null");
    let undelayed = (!trainer.test_freq.is_due_before(trainer.eval_delay), "trainer.test_freq selects no step before it");
    let unwatched = (trainer.metric_for_best_model.is_none(), "trainer.metric_for_best_model is null");
    let never_early = (trainer.test_freq.is_never(), "trainer.test_freq=-1 validates only after the last step");
    let no_patience = (trainer.early_stopping_patience.is_none(), "trainer.early_stopping_patience is null");
    let counted = (trainer.total_training_steps.is_some(), "trainer.total_training_steps is the length of the run");
    let afresh = (trainer.resume_mode == TrainerResumeMode::Disable, "trainer.resume_mode=disable loads no checkpoint");
    let rows = table(&[
        ((!dynamic, "it needs data.use_dynamic_bsz=true"), &["data.max_token_len_per_gpu"]),
        ((dynamic, "data.use_dynamic_bsz=true cuts by data.max_token_len_per_gpu"), &["data.micro_batch_size_per_gpu"]),
        (unvalidated, &["data.val_max_samples", "trainer.eval_delay"]),
        ((unvalidated.0 && !trainer.test_freq.is_never(), unvalidated.1), &["trainer.test_freq"]),
        (undelayed, &["trainer.eval_delay"]),
        (unwatched, &["trainer.greater_is_better"]),
        (never_early, &["trainer.early_stopping_patience"]),
        (no_patience, &["trainer.early_stopping_threshold"]),
        ((!data.shuffle, "data.shuffle is false"), &["data.seed"]),
        ((!draws, "no weights are drawn, and data.shuffle is false or data.seed set"), &["trainer.seed"]),
        (counted, &["trainer.total_epochs"]),
        (afresh, &["checkpoint.load_contents"]),
    ]);
    let optim = optim.optim();
    let of_schedule = of_schedule(schedule_keys!("optim"), &optim)?;
    let of_optimizer = of_optimizer(optimizer_keys!("optim"), &optim);
    let of_stage = O::unused_options(config)?;
    let of_sharding = sharding.unused_options("trainer.nccl_timeout");
    Ok(of_stage
        .into_iter()
        .chain(of_sharding)
        .chain(rows)
        .chain(of_schedule)
        .chain(of_optimizer)
        .chain(lora_settings::unused_options(&lora))
        .collect())
}

/// Returns the limit of a micro-batch on the device.
pub(super) fn cut(config: &impl StageConfig) -> Cut {
    let data = config.stage().data;
    if data.use_dynamic_bsz { Cut::Tokens(data.max_token_len_per_gpu) } else { Cut::Sequences(data.micro_batch_size_per_gpu) }
}
