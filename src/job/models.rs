//! From settings to a device, a trained model, its optimizer and its schedule.

use anyhow::{Context, Result, anyhow, bail};

use burnish_config::schema::{Device, Dtype, ModelInit, OptimConfig};
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, DecoderConfig};
use burnish_optim::{Learner, Optimizer, OptimizerSettings, Schedule, schedule};

/// Returns a model with an optimizer and its schedule. `section`: the key of their settings, which names the learner.
///
/// # Errors
/// The errors of [`optimizer`] and [`schedule()`].
pub fn learner(
    model: CausalLm,
    section: &'static str,
    optim: &OptimConfig,
    grad_clip: f64,
    total_steps: u64,
    ranks: &Ranks,
) -> Result<Learner> {
    Ok(Learner {
        name: section,
        model: model.trainable(),
        ranks: ranks.clone(),
        optimizer: optimizer(section, optim)?,
        schedule: schedule(optim, total_steps)?,
        lr: optim.lr,
        grad_clip,
    })
}

/// Returns the optimizer that the settings name. `section`: the key of the settings.
///
/// # Errors
/// If `override_optimizer_config` has an entry that the optimizer does not support, or an invalid value.
pub fn optimizer(section: &str, optim: &OptimConfig) -> Result<Optimizer> {
    let (lr, betas, eps, weight_decay) = (optim.lr, optim.betas, optim.eps, optim.weight_decay);
    let (no_decay, options) = (optim.no_decay_name_list.clone(), optim.override_optimizer_config.clone());
    let settings = OptimizerSettings { lr, betas, eps, weight_decay, no_decay, options };
    let built = burnish_optim::find(&optim.optimizer).context("unknown optimizer")?.build(&settings);
    built.with_context(|| format!("{section}.override_optimizer_config"))
}

/// Returns the learning rates of a run of `total_steps`.
pub fn schedule(optim: &OptimConfig, total_steps: u64) -> Result<Schedule> {
    let schedule_steps = optim.schedule_steps(total_steps as usize);
    let share = |rate: f64| if optim.lr > 0.0 { rate / optim.lr } else { 0.0 };
    Ok(Schedule {
        warmup_steps: schedule::warmup_steps(optim.lr_warmup_steps, optim.lr_warmup_steps_ratio, schedule_steps),
        warmup_init: share(optim.lr_warmup_init),
        floor: optim.min_lr_ratio.max(share(optim.min_lr)),
        num_cycles: optim.num_cycles,
        power: optim.power,
        timescale: optim.timescale,
        stable_ratio: optim.stable_ratio,
        wsd_decay_steps: optim.lr_wsd_decay_steps,
        wsd_style: schedule::find_style(&optim.lr_wsd_decay_style).context("unknown lr_wsd_decay_style")?,
        zero_indexed_step: optim.zero_indexed_step,
        ..Schedule::new(schedule::find(&optim.lr_scheduler_type).context("unknown lr_scheduler_type")?, schedule_steps)
    })
}

/// Returns true if the learning rate at some step depends on the length of the run.
pub(crate) fn rate_follows_length(optim: &OptimConfig) -> bool {
    let warms_up = optim.lr_warmup_steps <= 0 && optim.lr_warmup_steps_ratio > 0.0;
    let falls = schedule::find(&optim.lr_scheduler_type).is_some_and(|kind| kind.follows_length);
    optim.total_training_steps < 0 && (warms_up || falls)
}

/// Converts an `init` to the model layer's type.
pub(crate) fn model_init(init: ModelInit, seed: u64) -> burnish_model::Init {
    match init {
        ModelInit::Pretrained => burnish_model::Init::Pretrained,
        ModelInit::Random => burnish_model::Init::Random { seed },
    }
}

/// Refuses a tokenizer with more tokens than the model has embeddings for, and sequences longer than its positions. `shorten`:
/// the keys that shorten the sequences.
pub(crate) fn check_model(model: &DecoderConfig, tokenizer: &Tokenizer, longest: usize, shorten: &str) -> Result<()> {
    let (tokens, rows) = (tokenizer.vocab_size(), model.vocab_size);
    if tokens > rows {
        let new = tokenizer.new_tokens().map_or(String::new(), |new| {
            format!("; tokenizer.json lacks tokens that other files of its folder name: {new}; remove those names, or add rows to the model")
        });
        bail!("the tokenizer has {tokens} tokens, the model has embeddings for {rows}{new}");
    }
    let limit = model.max_position_embeddings;
    if longest > limit {
        bail!("a sequence may have {longest} tokens, the model's max_position_embeddings is {limit}; lower {shorten}");
    }
    Ok(())
}

/// Opens the device that the setting `key` names, for models of these dtypes, each with its key.
///
/// # Errors
/// If the device is missing or not built in, with those that exist; if the device cannot compute in a dtype.
pub(crate) fn open_device(key: &str, device: Device, dtypes: &[(&str, Dtype)]) -> Result<burn::tensor::Device> {
    let gpu = match device {
        Device::Cpu => None,
        Device::Gpu(interface, index) => Some((interface.as_str(), index)),
    };
    let cpu = if key.starts_with("--") { format!("{key} cpu") } else { format!("{key}=cpu") };
    let opened = burnish_model::device::open(gpu);
    let opened = opened.map_err(|error| anyhow!("{key}={device}: {error:#}; to compute on the CPU, write {cpu}"))?;
    let lacks_bfloat16 = !burnish_model::gpu_backends::has_bfloat16(&opened);
    match dtypes.iter().find(|(_, dtype)| lacks_bfloat16 && *dtype == Dtype::Bfloat16) {
        Some((key, _)) => bail!("{key}=bfloat16: {device} does not compute in bfloat16 (`trainer devices`); write {key}=float32"),
        None => Ok(opened),
    }
}

/// Returns true if a dtype is bfloat16 on the open device that the settings name.
pub fn is_bfloat16(dtype: Dtype, device: Device, opened: &burn::tensor::Device) -> bool {
    dtype.is_bfloat16(device) && burnish_model::gpu_backends::has_bfloat16(opened)
}
