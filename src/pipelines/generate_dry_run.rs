//! `trainer generate --dry-run`: reads and checks everything that a generation does, without weights and responses.

use anyhow::{Context, Result};

use super::generate_inputs::GenerateInputs;
use crate::job::dry_run::{check_weights, describe, names, report};
use crate::job::models::open_device;
use burnish_config::Loaded;
use burnish_config::schema::{GenerationConfig, ModelInit};

/// Describes what a generation would do.
///
/// # Errors
/// If a generation would be refused before its first response. The number of weights is checked, but not the name, shape
/// and type of each; the output file is not opened.
pub fn dry_run(loaded: Loaded<GenerationConfig>) -> Result<String> {
    open_device("trainer.device", loaded.config.trainer.device, &[("model.dtype", loaded.config.model.dtype)])?;
    let inputs = GenerateInputs::read(loaded)?;
    let (data, rollout) = (&inputs.config.data, &inputs.config.rollout);
    let model = &inputs.config.model.path;
    check_weights(model, ModelInit::Pretrained, &inputs.decoder).context("model.path")?;
    let (prompts, batch) = (inputs.prompts.len(), data.batch_size);
    let files: Vec<_> = data.path.iter().cloned().collect();
    let mut lines = vec![
        ("model", describe(model, &inputs.decoder, ModelInit::Pretrained, None)),
        ("device", inputs.config.trainer.device.to_string()),
        ("tokenizer", format!("{}: {} tokens", inputs.tokenizer_folder(), inputs.tokenizer.vocab_size())),
        ("prompts", format!("{prompts} from {}", names(&files))),
        ("longest", format!("{} tokens of prompt, {} of response", inputs.longest_prompt(), rollout.response_length)),
        (
            "plan",
            format!(
                "{} batches of up to {batch} prompts × {} responses = {} responses",
                prompts.div_ceil(batch),
                data.n_samples,
                prompts * data.n_samples
            ),
        ),
        ("output", data.output_path.to_string()),
    ];
    if let Some(talks) = &inputs.talks {
        lines.insert(lines.len() - 1, ("agents", talks.agents.describe()));
    }
    let report = report(&lines, &inputs.memory(), "");
    inputs.weights.leave();
    Ok(report)
}
