//! From settings to a loaded model with its tools.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::history::ChatHistory;
use super::partner::{ChatTools, Partner};
use crate::job::agents::{AgentSettings, Agents, EndpointSettings};
use crate::job::built_in;
use crate::job::generation::{native_engine, sampling};
use crate::job::hub_names::NamedModel;
use crate::job::template_date;
use crate::job::token_rules::token_rules;
use crate::job::unused_options::warn_of_unused;
use crate::pipelines::generate_inputs::unused_options;
use crate::pipelines::serve::ModelOptions;
use burnish_agent::calls::{CallFormat, FORMATS, format_named, format_of_template};
use burnish_config::Loaded;
use burnish_config::schema::GenerationConfig;
use burnish_data::Tokenizer;
use burnish_rollout::Logprobs;
use burnish_util::interrupt::Interrupt;

/// The options of a chat that are not settings.
pub(crate) struct ChatOptions<'a> {
    /// The folder of the model, or its name on the Hub.
    pub model: &'a Path,
    pub system: Option<String>,
    /// True if texts are continued without the chat template.
    pub raw: bool,
}

/// Settings of `trainer generate` for conversations that a chat does not hold.
const WITHOUT_USER: &[&str] = &[
    "multi_turn.interaction_config_path",
    "agent.environment.path",
    "agent.agent_func_path",
    "agent.server.path",
    "agent.agent_loop_config_path",
];

/// Settings of `trainer generate` without a meaning in a chat, each with the reason.
const UNUSED: &[(&str, &str)] = &[
    ("rollout.prompt_length", "a chat may have all positions of the model (rollout.max_model_len)"),
    ("rollout.max_num_seqs", "a chat has one answer at a time"),
    ("rollout.agent.default_agent_loop", "a chat has no rows"),
    ("rollout.agent.read_agent_name", "a chat has no rows"),
    ("rollout.multi_turn.max_user_turns", "the user ends the chat"),
    ("rollout.agent.tell_unreadable_calls", "the user sees calls that cannot be read"),
    ("rollout.agent.conversation_timeout", "the user ends the chat"),
    ("rollout.agent.neutralise_control_tokens", "special tokens in messages of a chat are always text after the first answer"),
];

/// Loads the model and starts its tools. Returns the partner, and the history with the system message.
///
/// # Errors
/// If the folder does not hold a model, or a setting is wrong.
pub(crate) fn open(mut loaded: Loaded<GenerationConfig>, options: ChatOptions) -> Result<(Partner, ChatHistory)> {
    built_in::replace_files(&mut loaded.config)?;
    let config = &loaded.config;
    let rollout = &config.rollout;
    let keys = rollout.conversations();
    let interrupt = Interrupt::on_ctrl_c()?;
    for key in WITHOUT_USER {
        let key = format!("rollout.{key}");
        ensure!(loaded.tree.value(&key).is_none_or(is_null), "{key}: in a chat you are the user; leave it out");
    }
    let max_tokens = rollout.response_length;
    let sampling = sampling(&rollout.sampling(), max_tokens, Logprobs::default());
    let variables: serde_json::Map<String, Value> = config.data.apply_chat_template_kwargs.clone().into_iter().collect();
    let agents = Agents::start(
        &AgentSettings {
            keys,
            process: config.reward.process(),
            prompt_length: rollout.prompt_length,
            response_length: max_tokens,
            max_model_len: rollout.max_model_len,
            scores_by_rule: true,
            custom_loop_config: Value::Null,
            endpoint: EndpointSettings {
                sampling,
                variables: variables.clone(),
                ignore_eos: rollout.ignore_eos,
                stop_token_ids: rollout.stop_token_ids.clone(),
            },
        },
        &interrupt,
    )?;
    let processes = agents.as_ref().map(Agents::processes).unwrap_or_default();
    let mut unused = unused_options(config, processes);
    unused.extend(UNUSED.iter().map(|(key, why)| (true, *key, *why)));
    warn_of_unused::<GenerationConfig>(&loaded.tree, &unused)?;
    let model = ModelOptions {
        model: NamedModel::find("MODEL", options.model)?,
        name: Some(options.model.display().to_string()),
        tokenizer: config
            .model
            .tokenizer_path
            .as_ref()
            .map(|path| NamedModel::tokenizer("model.tokenizer_path", path.as_path()))
            .transpose()?,
        chat_template: config.model.custom_chat_template.clone(),
        variables,
        format: None,
        ignore_in_thinking: rollout.agent.ignore_calls_in_thinking,
        allows_special_tokens: false,
        ignore_eos: rollout.ignore_eos,
        stop_token_ids: rollout.stop_token_ids.clone(),
        sampling,
        max_model_len: rollout.max_model_len,
        longest_key: "rollout.max_model_len",
        max_answers: 1,
        device: config.trainer.device,
        dtype: config.model.dtype,
        device_keys: ("trainer.device", "model.dtype"),
    };
    let mut checked = model.check()?;
    checked.map_tokenizer(|tokenizer| template_date::dated(tokenizer, config.data.chat_template_date.as_deref(), None))?;
    let tokenizer = checked.tokenizer();
    let is_raw = options.raw || !tokenizer.has_chat_template();
    if is_raw {
        let why = if options.raw { "--raw".to_owned() } else { format!("{} has no chat template", options.model.display()) };
        for (is_set, name) in [(options.system.is_some(), "--system"), (agents.is_some(), "tools")] {
            ensure!(!is_set, "{why}, so texts are continued unchanged, and {name} would have no effect: leave it out");
        }
        if !options.raw {
            tracing::info!("{why}: every text is continued unchanged, without those before it (--raw)");
        }
    }
    let tools = match &agents {
        Some(agents) => {
            let (tools, limits) = agents.all_tools("chat").context("tools of a chat")?;
            checked.read_calls(format(&rollout.multi_turn.format, checked.tokenizer())?);
            Some(ChatTools::new(tools, limits.clone(), &rollout.multi_turn))
        }
        None => None,
    };
    let rules = token_rules(&rollout.token_rules(), "rollout", &loaded.tree, checked.tokenizer(), checked.vocab_size())?;
    let engine = native_engine(&rollout.sampling());
    let seed = config.trainer.seed;
    let history = ChatHistory::new(options.system, is_raw);
    let partner = Partner::start(checked, engine, rules, (seed, rollout.stop.clone()), (tools, agents), interrupt)?;
    Ok((partner, history))
}

fn is_null(value: &burnish_config::Value) -> bool {
    matches!(value, burnish_config::Value::Null)
}

/// Returns the format of calls with this name; `auto` finds it in the chat template.
fn format(name: &str, tokenizer: &Tokenizer) -> Result<&'static CallFormat> {
    let key = "rollout.multi_turn.format";
    if name != "auto" {
        return format_named(name).with_context(|| format!("{key}: unknown format {name}"));
    }
    match format_of_template(|sign| tokenizer.template_has(sign)) {
        Some(format) => Ok(format),
        None => {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            bail!("{key}=auto: the chat template shows no format of calls; write one of {}", names.join(", "))
        }
    }
}
