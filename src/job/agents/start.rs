//! From settings to tools, users and environments that are ready, with every mistake reported before the first conversation.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::agent::calls::{FORMATS, Format, format_named, format_shown};
use crate::agent::config::{ToolKind, UserConfig, tools, users};
use crate::agent::loops::TemplateChat;
use crate::agent::session::{EnvironmentClass, Functions, Host, SessionOptions, Setup};
use crate::agent::tools::built_in::{self, Made};
use crate::agent::{Limits, TruncateSide, users as built_in_users};
use crate::config::schema::{self, AgentKeys, FORMAT, Location, PpoConfig};
use crate::config::yaml_file::YamlFile;
use crate::data::{AgentRows, TemplateVariables, Tokenizer};
use crate::util::interrupt::Interrupt;

/// The loops that are built in.
pub(super) const SINGLE_TURN: &str = "single_turn_agent";
pub(super) const TOOLS: &str = "tool_agent";
pub(super) const ENVIRONMENT: &str = "environment_agent";
pub(super) const TEXT_ENVIRONMENT: &str = "text_environment_agent";

const GROUP: &str = "actor_rollout_ref.rollout";

/// The agents of a run.
pub struct Agents {
    pub(super) limits: Limits,
    /// The loop of rows that name none.
    pub(super) default: String,
    pub(super) built_in: Vec<Made>,
    pub(super) host: Option<Host>,
    pub(super) users: Vec<UserConfig>,
    /// The name of the format of calls (`multi_turn.format`).
    format: String,
    pub(super) ignore_in_thinking: bool,
    pub(super) tells_unreadable: bool,
    pub(super) neutralise: bool,
    pub(super) max_iterations: Option<usize>,
    /// True if the reward of an environment is the score, because no reward function was named.
    pub(super) environment_scores: bool,
    pub(super) interrupt: Interrupt,
    /// The settings that bring something, by the loop that reads them.
    pub(super) read_by: BTreeMap<&'static str, Vec<&'static str>>,
    pub(super) prompt: Option<PromptParts>,
    /// The chats of `tool_agent`, by the names of the tools that a row may use.
    pub(super) chats: Mutex<HashMap<Vec<String>, Arc<TemplateChat>>>,
}

/// What conversations are written with, which is known when the tokenizer is read.
pub(super) struct PromptParts {
    pub tokenizer: Tokenizer,
    /// The variables of the chat template, without tools.
    pub variables: TemplateVariables,
    pub model_type: String,
    pub format: &'static Format,
}

impl Agents {
    /// Starts what the settings name; `None` for a run whose responses are single turns. `scores_by_rule`: no reward function is named.
    ///
    /// # Errors
    /// A file or an entry that is wrong, with its place; Python code that cannot be loaded.
    pub fn start(config: &PpoConfig, scores_by_rule: bool, interrupt: &Interrupt) -> Result<Option<Self>> {
        let rollout = &config.actor_rollout_ref.rollout;
        let keys = rollout.conversations();
        let choice = keys.default_loop();
        if !keys.has_any() && choice.name == SINGLE_TURN {
            return Ok(None);
        }
        if choice.by_enable {
            tracing::info!("{GROUP}.multi_turn.enable=true: rows that name no loop run in {}", choice.name);
        }
        ensure!(
            keys.agent.agent_loop_config_path.is_none(),
            "{GROUP}.agent.agent_loop_config_path: loops of your own are not run yet; tools, interactions and environments are, with \
             {TOOLS}, {ENVIRONMENT} and {TEXT_ENVIRONMENT}"
        );
        let (built_in, setup, users) = read(&keys)?;
        let reward = &config.reward;
        let options = SessionOptions {
            python: reward.python.to_string(),
            start_timeout: Duration::from_secs_f64(reward.start_timeout),
            memory_limit_mb: keys.agent.memory_limit_mb,
            cpu_limit: reward.cpu_limit,
            pass_env: reward.pass_env.clone(),
            interrupt: interrupt.clone(),
        };
        let host = setup.map(|setup| Host::start(&setup, options)).transpose()?;
        let (multi_turn, agent, data) = (keys.multi_turn, keys.agent, &config.data);
        Ok(Some(Self {
            limits: Limits {
                max_assistant_turns: multi_turn.assistant_turns(),
                max_user_turns: multi_turn.user_turns(),
                max_parallel_calls: multi_turn.max_parallel_calls,
                max_tool_response_length: multi_turn.max_tool_response_length,
                truncate: match multi_turn.tool_response_truncate_side {
                    schema::TruncateSide::Left => TruncateSide::Left,
                    schema::TruncateSide::Middle => TruncateSide::Middle,
                    schema::TruncateSide::Right => TruncateSide::Right,
                },
                prompt_length: data.max_prompt_length,
                response_length: data.max_response_length,
                max_model_len: rollout.max_model_len,
                call_timeout: Duration::from_secs_f64(agent.call_timeout),
                conversation_timeout: agent.conversation_timeout.map(Duration::from_secs_f64),
            },
            default: choice.name.to_owned(),
            built_in,
            host,
            users,
            format: multi_turn.format.clone(),
            ignore_in_thinking: agent.ignore_calls_in_thinking,
            tells_unreadable: agent.tell_unreadable_calls,
            neutralise: agent.neutralise_control_tokens,
            max_iterations: agent.max_tool_calling_iterations,
            environment_scores: scores_by_rule,
            interrupt: interrupt.clone(),
            read_by: [TOOLS, ENVIRONMENT, TEXT_ENVIRONMENT].map(|name| (name, keys.read_by(name))).into(),
            prompt: None,
            chats: Mutex::default(),
        }))
    }

    /// What rows must know to be rendered.
    ///
    /// # Errors
    /// Two tools of one name.
    pub fn rows(&self) -> Result<AgentRows> {
        let offers = self.host.as_ref().map(Host::offers);
        let mut of_tools: Vec<Value> = self.built_in.iter().map(|made| made.schema().clone()).collect();
        let offered = offers.iter().flat_map(|offers| &offers.tools);
        of_tools.extend(offered.clone().map(|tool| tool.schema.clone()));
        let name = |schema: &Value| schema["function"]["name"].as_str().unwrap_or_default().to_owned();
        for (i, schema) in of_tools.iter().enumerate() {
            if of_tools[..i].iter().any(|other| name(other) == name(schema)) {
                bail!("two tools have the name {}: give one of them another in its schema, or leave it out", name(schema));
            }
        }
        let mut of_environment: Vec<Value> = offered.map(|tool| tool.schema.clone()).collect();
        of_environment.extend(offers.iter().flat_map(|offers| &offers.environments).flat_map(|one| one.schemas.clone()));
        let mut tools = BTreeMap::new();
        if !of_tools.is_empty() {
            tools.insert(TOOLS.to_owned(), of_tools);
        }
        if !of_environment.is_empty() {
            tools.insert(ENVIRONMENT.to_owned(), of_environment);
        }
        Ok(AgentRows { default: self.default.clone(), tools })
    }

    /// Adds what conversations are written with: the tokenizer, the variables of its template, the model's `model_type`, and the greatest
    /// length of its sequences.
    ///
    /// # Errors
    /// A format of calls that cannot be found out.
    pub fn write_with(&mut self, tokenizer: &Tokenizer, variables: TemplateVariables, model: (&str, usize)) -> Result<()> {
        let (model_type, longest) = model;
        let format = format_of(&self.format, tokenizer)?;
        self.limits.max_model_len = Some(self.limits.max_model_len.unwrap_or(longest).min(longest));
        self.prompt = Some(PromptParts { tokenizer: tokenizer.clone(), variables, model_type: model_type.to_owned(), format });
        Ok(())
    }

    /// Tokens that end a turn in the format of calls, beside the tokenizer's own. A token that the tokenizer does not have ends nothing.
    pub fn stop_ids(&self) -> Vec<u32> {
        let of = |parts: &PromptParts| parts.format.stop.iter().filter_map(|text| parts.tokenizer.single(text).ok()).collect();
        self.prompt.as_ref().map(of).unwrap_or_default()
    }
}

/// The tools that are built in, what Python is to load, and the users.
fn read(keys: &AgentKeys) -> Result<(Vec<Made>, Option<Setup>, Vec<UserConfig>)> {
    let (multi_turn, agent) = (keys.multi_turn, keys.agent);
    let (mut made, mut setup) = (Vec::new(), Setup::default());
    let mut uses_python = false;
    if let Some(path) = &multi_turn.tool_config_path {
        let key = format!("{GROUP}.multi_turn.tool_config_path");
        let file = YamlFile::read(&key, path.as_path())?;
        for tool in tools(file.value()).map_err(|wrong| file.wrong(&wrong.key, wrong.message))? {
            if tool.kind == ToolKind::Mcp {
                let message =
                    "servers of the Model Context Protocol are not asked yet: offer their tools by a class or function of Python";
                return Err(file.wrong(&tool.place, message).into());
            }
            match built_in::find(&tool.class_name) {
                Some(kind) => {
                    let one = Made::new(kind, &Value::Object(tool.config), tool.schema);
                    made.push(one.map_err(|error| file.wrong(&tool.place, format!("{error:#}")))?);
                }
                None => setup.verl_tools.push(json!({
                    "class_name": tool.class_name,
                    "config": tool.config,
                    "tool_schema": tool.schema,
                })),
            }
        }
    }
    setup.function_tools = python_file("multi_turn.function_tool_path", multi_turn.function_tool_path.as_ref())?;
    if let Some(path) = python_file("agent.functions_path", agent.functions_path.as_ref())? {
        setup.functions.push(Functions { path, names: agent.functions.clone() });
    }
    let environment = python_file("agent.environment.path", agent.environment.path.as_ref())?;
    if let (Some(path), Some(class)) = (environment, &agent.environment.name) {
        setup.environments.push(EnvironmentClass { name: None, path, class: class.clone() });
    }
    setup.agent = python_file("agent.agent_func_path", agent.agent_func_path.as_ref())?;
    let mut all_users = Vec::new();
    if let Some(path) = &multi_turn.interaction_config_path {
        let key = format!("{GROUP}.multi_turn.interaction_config_path");
        let file = YamlFile::read(&key, path.as_path())?;
        all_users = users(file.value()).map_err(|wrong| file.wrong(&wrong.key, wrong.message))?;
        let own = all_users.iter().filter(|user| built_in_users::find(&user.class_name).is_none());
        setup.interactions =
            own.map(|user| json!({"name": user.name, "class_name": user.class_name, "config": user.config})).collect();
    }
    uses_python |= !setup.verl_tools.is_empty() || !setup.functions.is_empty() || !setup.environments.is_empty();
    uses_python |= setup.function_tools.is_some() || setup.agent.is_some() || !setup.interactions.is_empty();
    Ok((made, uses_python.then_some(setup), all_users))
}

/// A file of Python that a setting names: a path, `file://PATH` or `pkg://MODULE`.
fn python_file(key: &str, path: Option<&Location>) -> Result<Option<String>> {
    let Some(path) = path.map(ToString::to_string) else { return Ok(None) };
    let is_there = path.starts_with("pkg://") || Path::new(path.strip_prefix("file://").unwrap_or(&path)).is_file();
    ensure!(is_there, "{GROUP}.{key}: there is no file {path}");
    Ok(Some(path))
}

/// The format of this name; `auto` is what the chat template shows.
///
/// # Errors
/// A name of no format, a template that shows none.
fn format_of(name: &str, tokenizer: &Tokenizer) -> Result<&'static Format> {
    if name != "auto" {
        return format_named(name).with_context(|| format!("{FORMAT}: unknown format {name}"));
    }
    format_shown(|sign| tokenizer.template_has(sign)).with_context(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        format!("{FORMAT}=auto: the chat template shows no format of calls; write one of {}", names.join(", "))
    })
}
