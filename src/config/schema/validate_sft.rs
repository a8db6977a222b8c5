//! What the types of [`SftConfig`] cannot check.

use super::validate::{COUNT, COUNT_OR_ALL, DECAY, FRACTION, NOT_NEGATIVE, POSITIVE, check};
use super::{ResumeMode, SftConfig, Truncation};
use crate::config::Report;
use crate::config::plan::divides;

pub fn sft(config: &SftConfig, report: &mut Report) {
    let (data, model, optim, trainer) = (&config.data, &config.model, &config.optim, &config.trainer);
    let not_available = [
        (
            data.multiturn.enable,
            "data.multiturn.enable",
            "examples of several turns are not available yet",
            "write data.multiturn.enable=false",
        ),
        (
            data.truncation == Truncation::Middle,
            "data.truncation",
            "an example cannot be cut in its middle",
            "use error, left or right",
        ),
        (model.lora_rank > 0, "model.lora_rank", "LoRA is not available yet", "write model.lora_rank=0"),
        (optim.optimizer != "AdamW", "optim.optimizer", "the only optimizer is AdamW", "write optim.optimizer=AdamW"),
        (optim.lr_scheduler == "wsd", "optim.lr_scheduler", "the `wsd` schedule is not available yet", "use constant or cosine"),
        (
            optim.override_optimizer_config.is_some(),
            "optim.override_optimizer_config",
            "the optimizer has no further arguments",
            "write optim.override_optimizer_config=null",
        ),
    ];
    for (wrong, key, message, help) in not_available {
        if wrong {
            report.wrong(key, message, help);
        }
    }
    let mut rows = vec![
        ("data.train_batch_size", data.train_batch_size as f64, COUNT),
        ("data.max_length", data.max_length as f64, COUNT),
        ("data.train_max_samples", data.train_max_samples as f64, COUNT_OR_ALL),
        ("data.val_max_samples", data.val_max_samples as f64, COUNT_OR_ALL),
        ("optim.lr", optim.lr, NOT_NEGATIVE),
        ("optim.betas", optim.betas[0], DECAY),
        ("optim.betas", optim.betas[1], DECAY),
        ("optim.eps", optim.eps, POSITIVE),
        ("optim.weight_decay", optim.weight_decay, NOT_NEGATIVE),
        ("optim.lr_warmup_steps_ratio", optim.lr_warmup_steps_ratio, FRACTION),
        ("optim.clip_grad", optim.clip_grad, POSITIVE),
        ("optim.min_lr_ratio", optim.min_lr_ratio, FRACTION),
        ("optim.num_cycles", optim.num_cycles, POSITIVE),
        ("trainer.total_epochs", trainer.total_epochs as f64, COUNT),
    ];
    rows.extend(trainer.total_training_steps.map(|steps| ("trainer.total_training_steps", steps as f64, COUNT)));
    rows.extend(trainer.max_ckpt_to_keep.map(|count| ("trainer.max_ckpt_to_keep", count as f64, COUNT)));
    check(rows, report);
    let (batch, micro) = (data.train_batch_size, data.micro_batch_size_per_gpu);
    if let Err(error) = divides("data.micro_batch_size_per_gpu", micro, "data.train_batch_size", batch, &batch.to_string()) {
        report.wrong(error.key, error.message, error.help);
    }
    if trainer.resume_mode == ResumeMode::ResumePath && trainer.resume_from_path.is_none() {
        let help = "write trainer.resume_from_path=…/global_step_N";
        report.wrong("trainer.resume_from_path", "`trainer.resume_mode=resume_path` needs `trainer.resume_from_path`", help);
    }
}
