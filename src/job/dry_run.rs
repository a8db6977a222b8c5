//! The report of `--dry-run`: the model, the steps, the files and the memory of a run.

use anyhow::{Result, bail};

use super::memory_estimate::MemoryEstimate;
use burnish_config::schema::{Location, ModelInit, OneOrMany};
use burnish_model::DecoderConfig;
use burnish_model::experts::values_of;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::weights::{WeightFiles, weights_file};

/// Returns the report: the named lines, the memory, and the `times`. If this machine lacks memory, warns and reports all the same, because
/// the run may be planned for a larger machine.
pub fn report(lines: &[(&str, String)], memory: &MemoryEstimate, times: &str) -> String {
    if let Some(lack) = memory.lack() {
        tracing::warn!("{lack}; on a larger one it may run");
    }
    let lines: String = lines.iter().map(|(name, text)| format!("{name:10}  {text}\n")).collect();
    format!("{lines}{memory}{times}nothing was trained or written (--dry-run)\n")
}

/// Describes the model in one line.
pub fn describe(path: &Location, decoder: &DecoderConfig, init: ModelInit, adapter: Option<&PeftAdapter>) -> String {
    let d = decoder;
    let weights = match adapter {
        Some(adapter) => {
            let (trained, count) = (adapter.num_parameters(), adapter.factors.len());
            let over = if d.quantization.is_some() { " over weights in 4 bits" } else { "" };
            format!("trained: {trained} in LoRA adapters of rank {} on {count} matrices{over}", adapter.rank)
        }
        None if init == ModelInit::Random => match weights_file(path.as_path()) {
            Some(file) => format!("random weights: {file} exists and is not read"),
            None => "random weights".to_owned(),
        },
        None => "its own weights".to_owned(),
    };
    let active = d.mixture.as_ref().map_or(String::new(), |_| format!(" ({} active)", d.active_parameters()));
    format!(
        "{path}: {} parameters{active}, {} layers, hidden size {}, vocabulary {}; {weights}",
        d.num_parameters(),
        d.num_hidden_layers,
        d.hidden_size,
        d.vocab_size
    )
}

/// Returns the number of steps and the step where they start.
pub fn steps(total: u64, per_epoch: u64, resumed: Option<u64>) -> String {
    let epochs = total as f64 / per_epoch as f64;
    let from = resumed.map_or(String::new(), |step| format!("; {} left after the checkpoint of step {step}", total - step));
    format!("{total}, {per_epoch} per epoch, {:.3} epochs{from}", epochs).replace(".000 epochs", " epochs")
}

/// Joins file names for people.
pub fn names(files: &[Location]) -> String {
    files.iter().map(|file| file.to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the number of validation rows and their files. `rows`: the kind of row, such as `prompts`.
pub fn validation(rows: &str, count: usize, files: Option<&OneOrMany<Location>>) -> String {
    match files {
        Some(files) => format!("{count} {rows} from {}", names(files)),
        None => "none: data.val_files is null".to_owned(),
    }
}

/// Checks that pretrained weights exist and that their number fits the model; reads only the headers. Skips weights on the Hub
/// that are not in the cache.
pub(crate) fn check_weights(model: &Location, init: ModelInit, decoder: &DecoderConfig) -> Result<()> {
    if init != ModelInit::Pretrained || model.lacks_weights() {
        return Ok(());
    }
    let files = WeightFiles::open(model.as_path())?;
    let tensors = files.parameters(decoder)?;
    let found: usize = tensors.iter().map(|(name, tensor)| values_of(name, tensor)).sum();
    let expected = decoder.num_parameters();
    if found != expected {
        bail!("{model} has {found} weights, but its config.json describes a model with {expected}");
    }
    Ok(())
}
