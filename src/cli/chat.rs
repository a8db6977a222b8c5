//! `trainer chat`: a conversation with a model in the terminal, or one answer to standard input.

use std::path::PathBuf;

use clap::Args;

use super::args::ConfigArgs;
use super::error::CliError;
use crate::pipelines::chat::{ChatOptions, all_input, is_dialogue, one_answer, open, talk};
use burnish_config::schema::GenerationConfig;

#[derive(Args)]
pub(crate) struct ChatArgs {
    /// Folder of a run, a checkpoint or a model, or the name of a model on the Hub
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// System message
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Temperature; 0 takes the most probable token [default: 0]
    #[arg(long, allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Smallest set of tokens with this total probability; 1 keeps all tokens
    #[arg(long, value_name = "SHARE")]
    top_p: Option<f64>,
    /// Number of the most probable tokens; 0 keeps all tokens
    #[arg(long, value_name = "TOKENS")]
    top_k: Option<usize>,
    /// Maximum tokens of an answer [default: 1024]
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<usize>,
    /// Seed of sampling
    #[arg(long)]
    seed: Option<u64>,
    /// YAML file that lists tools, as rollout.multi_turn.tool_config_path
    #[arg(long, value_name = "FILE")]
    tools: Option<String>,
    /// Continue texts unchanged, without the chat template
    #[arg(long)]
    raw: bool,
    /// Device, as trainer.device
    #[arg(long)]
    device: Option<String>,
    /// key=value of generation.yaml, such as rollout.min_p=0.05; later ones win
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
}

/// Settings of `data` that a chat reads; the others belong to rows.
const DATA: [&str; 2] = ["data.apply_chat_template_kwargs", "data.chat_template_date"];
/// Settings that name files with tools.
const TOOLS: [&str; 3] = ["tool_config_path", "function_tool_path", "functions_path"];

pub(super) fn run(args: &ChatArgs) -> Result<(), CliError> {
    if args.model.to_string_lossy().contains('=') && !args.model.exists() {
        let message = format!("the first word must be the model, not `{}`: trainer chat MODEL KEY=VALUE …", args.model.display());
        return Err(CliError::Setup(message));
    }
    let key = |word: &str| word.trim_start_matches(['+', '~']).split('=').next().unwrap_or_default().to_owned();
    for key in args.overrides.iter().map(|word| key(word)) {
        if key.starts_with("data.") && !DATA.iter().any(|known| key.starts_with(known)) {
            return Err(CliError::Setup(format!("`{key}`: a chat reads no rows; leave it out")));
        }
        if key == "model.path" {
            return Err(CliError::Setup("`model.path`: the first word names the model; leave the setting out".to_owned()));
        }
    }
    let has_tools = args.tools.is_some() || args.overrides.iter().any(|word| TOOLS.iter().any(|key| word.contains(key)));
    let loaded = ConfigArgs { overrides: overrides(args, has_tools), ..ConfigArgs::default() }.load::<GenerationConfig>()?;
    let options = ChatOptions { model: &args.model, system: args.system.clone(), raw: args.raw };
    let input = if is_dialogue() { None } else { Some(all_input().map_err(CliError::setup)?) };
    let (partner, history) = open(loaded, options).map_err(CliError::setup)?;
    match input {
        None => talk(partner, history),
        Some(text) => one_answer(partner, history, &text),
    }
    .map_err(CliError::run)
}

/// Returns the settings: the defaults of a chat, then the options, then the user's.
fn overrides(args: &ChatArgs, has_tools: bool) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "\\'"));
    let set = |key: &str, value: Option<String>| value.map(|value| format!("{key}={value}"));
    [
        // A chat has no rows; these settings are not read.
        set("data.path", Some("none.jsonl".to_owned())),
        set("data.output_path", Some("none.parquet".to_owned())),
        set("model.path", Some(quoted(&args.model.to_string_lossy()))),
        set("rollout.multi_turn.format", has_tools.then(|| "auto".to_owned())),
        set("rollout.temperature", Some(args.temperature.unwrap_or(0.0).to_string())),
        set("rollout.response_length", Some(args.max_tokens.unwrap_or(1024).to_string())),
        set("rollout.top_p", args.top_p.map(|share| share.to_string())),
        set("rollout.top_k", args.top_k.map(|tokens| tokens.to_string())),
        set("trainer.seed", args.seed.map(|seed| seed.to_string())),
        set("rollout.multi_turn.tool_config_path", args.tools.as_deref().map(quoted)),
        set("trainer.device", args.device.clone()),
    ]
    .into_iter()
    .flatten()
    .chain(args.overrides.iter().cloned())
    .collect()
}
