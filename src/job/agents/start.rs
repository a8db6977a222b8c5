//! Starts the tools, users and environments that settings name, and reports every mistake before the first conversation.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::read::read;
use super::server::AgentServer;
use crate::job::unused_options::ProcessKinds;
use burnish_agent::calls::CallFormat;
use burnish_agent::config::UserConfig;
use burnish_agent::loops::{TemplateChat, TemplateTokenService};
use burnish_agent::recorded::Recorder;
use burnish_agent::session::{Host, SessionOptions, StartMethod};
use burnish_agent::tokens::SpecialTokenEscaper;
use burnish_agent::tools::built_in::SharedTool;
use burnish_agent::tools::mcp;
use burnish_agent::{ConversationLimits, TruncateSide};
use burnish_config::schema::{self, AgentKeys, ProcessKeys};
use burnish_data::{AgentRows, TemplateVariables, Tokenizer};
use burnish_rollout::Sampling;
use burnish_util::interrupt::Interrupt;

/// Names of the built-in loops.
pub(super) const SINGLE_TURN: &str = "single_turn_agent";
pub(super) const TOOLS: &str = "tool_agent";
pub(super) const ENVIRONMENT: &str = "environment_agent";
pub(super) const TEXT_ENVIRONMENT: &str = "text_environment_agent";
pub(super) const SERVER: &str = "server_agent";

/// The settings of conversations, and other settings that concern them.
pub struct AgentSettings<'a> {
    pub keys: AgentKeys<'a>,
    pub process: ProcessKeys<'a>,
    /// Number of tokens kept of a prompt, from its end.
    pub prompt_length: usize,
    /// Token limit of a response.
    pub response_length: usize,
    pub max_model_len: Option<usize>,
    /// True if no reward function is named, so that the reward of an environment is the score.
    pub(crate) scores_by_rule: bool,
    /// Settings that the user's loops read; null without such loops.
    pub custom_loop_config: Value,
    pub endpoint: EndpointSettings,
}

/// The agents of a run.
pub struct Agents {
    /// Dotted key of the group of the settings of conversations.
    pub(super) group: &'static str,
    pub(super) limits: ConversationLimits,
    /// Loop of rows that do not name a loop.
    pub(super) default: String,
    /// True if every row has that loop, even if it names another.
    pub(super) ignores_names: bool,
    pub(super) built_in: Vec<SharedTool>,
    pub(super) host: Option<Host>,
    pub(super) users: Vec<UserConfig>,
    /// Name of the format of calls (`multi_turn.format`).
    pub(super) format: String,
    pub(super) ignore_in_thinking: bool,
    pub(super) tells_unreadable: bool,
    pub(super) neutralise: bool,
    pub(super) max_iterations: Option<usize>,
    /// True if the reward of an environment is the score, because no reward function is named.
    pub(super) environment_scores: bool,
    /// True if a program returns the score.
    pub(super) program_scores: bool,
    /// Sampling and template of replies to programs; `None` without a program.
    pub(super) endpoint: Option<EndpointSettings>,
    pub(super) interrupt: Interrupt,
    /// By loop: the settings with its tools or users, and the alternative settings; the loop needs at least one of them.
    pub(super) read_by: BTreeMap<&'static str, (Vec<&'static str>, Vec<&'static str>)>,
    pub(super) prompt: Option<PromptParts>,
    /// Recorder of results, including the results of an earlier process.
    pub(super) recorder: Option<Recorder>,
    /// Chats of `tool_agent`, by the names of the tools that a row may use.
    pub(super) chats: Mutex<HashMap<Vec<String>, Arc<TemplateChat>>>,
    /// Server that programs send requests to.
    pub(super) server: Option<AgentServer>,
}

/// Sampling and template of the replies to programs.
#[derive(Clone)]
pub struct EndpointSettings {
    pub sampling: Sampling,
    /// Variables of the chat template.
    pub variables: Map<String, Value>,
    pub ignore_eos: bool,
    pub stop_token_ids: Vec<u32>,
}

/// The parts that write prompts, known once the tokenizer is read.
pub(super) struct PromptParts {
    pub tokenizer: Tokenizer,
    /// Escapes special tokens in the text of tools and users (`agent.neutralise_control_tokens`).
    pub escaper: Option<Arc<SpecialTokenEscaper>>,
    /// Variables of the chat template, without tools.
    pub variables: TemplateVariables,
    pub model_type: String,
    pub format: &'static CallFormat,
    /// Token functions for the user's loops.
    pub tokens: Arc<TemplateTokenService>,
}

impl Agents {
    /// Starts the agents that the settings name; `None` for a run whose responses are single turns.
    ///
    /// # Errors
    /// If a file or an entry is wrong, with its place; if Python code cannot be loaded.
    pub fn start(settings: &AgentSettings, interrupt: &Interrupt) -> Result<Option<Self>> {
        let keys = settings.keys;
        let group = keys.group;
        let choice = keys.default_loop();
        if !keys.has_any() && choice.name == SINGLE_TURN {
            return Ok(None);
        }
        if choice.by_enable {
            tracing::info!("{group}.multi_turn.enable=true: rows that name no loop run in {}", choice.name);
        }
        let process = &settings.process;
        let servers = mcp::McpOptions {
            pass_env: process.pass_env.to_vec(),
            start_timeout: Duration::from_secs_f64(process.start_timeout),
            interrupt: interrupt.clone(),
        };
        let (built_in, mut setup, users) = read(&keys, &servers)?;
        if let Some(setup) = &mut setup {
            setup.loop_config = settings.custom_loop_config.clone();
        }
        let options = SessionOptions {
            python: process.python.to_string(),
            start_timeout: Duration::from_secs_f64(process.start_timeout),
            memory_limit_mb: keys.agent.memory_limit_mb,
            cpu_limit: process.cpu_limit,
            pass_env: process.pass_env.to_vec(),
            start_method: match keys.agent.start_method {
                schema::AgentStartMethod::Auto => StartMethod::Auto,
                schema::AgentStartMethod::Fork => StartMethod::Fork,
                schema::AgentStartMethod::Spawn => StartMethod::Spawn,
            },
            interrupt: interrupt.clone(),
        };
        if setup.is_none() && options.start_method != StartMethod::Auto {
            tracing::warn!("ignored: {group}.agent.start_method: no tool, user, environment or loop is in a Python file");
        }
        let host = setup.map(|setup| Host::start(&setup, options)).transpose()?;
        let (multi_turn, agent) = (keys.multi_turn, keys.agent);
        Ok(Some(Self {
            group,
            limits: ConversationLimits {
                max_assistant_turns: multi_turn.assistant_turns(),
                max_user_turns: multi_turn.user_turns(),
                max_parallel_calls: multi_turn.max_parallel_calls,
                max_tool_response_length: multi_turn.max_tool_response_length,
                truncate: match multi_turn.tool_response_truncate_side {
                    schema::ToolResponseTruncateSide::Left => TruncateSide::Left,
                    schema::ToolResponseTruncateSide::Middle => TruncateSide::Middle,
                    schema::ToolResponseTruncateSide::Right => TruncateSide::Right,
                },
                prompt_length: settings.prompt_length,
                response_length: settings.response_length,
                max_model_len: settings.max_model_len,
                longest_token: usize::MAX,
                call_timeout: Duration::from_secs_f64(agent.call_timeout),
                conversation_timeout: agent.conversation_timeout.map(Duration::from_secs_f64),
            },
            default: choice.name.to_owned(),
            ignores_names: !agent.read_agent_name,
            built_in,
            host,
            users,
            format: multi_turn.format.clone(),
            ignore_in_thinking: agent.ignore_calls_in_thinking,
            tells_unreadable: agent.tell_unreadable_calls,
            neutralise: agent.neutralise_control_tokens,
            max_iterations: agent.max_tool_calling_iterations,
            environment_scores: settings.scores_by_rule,
            program_scores: agent.server.scores.unwrap_or(settings.scores_by_rule),
            endpoint: agent.server.path.as_ref().map(|_| settings.endpoint.clone()),
            interrupt: interrupt.clone(),
            read_by: [TOOLS, ENVIRONMENT, TEXT_ENVIRONMENT, SERVER]
                .map(|name| (name, (keys.read_by(name), keys.needed_by(name))))
                .into(),
            prompt: None,
            recorder: None,
            chats: Mutex::default(),
            server: None,
        }))
    }

    /// Returns the kinds of processes that run tools, users and environments.
    pub fn processes(&self) -> ProcessKinds {
        ProcessKinds { python: self.host.is_some(), servers: self.built_in.iter().any(SharedTool::is_from_service) }
    }

    /// Returns true if conversations ask processes or servers whose results may differ the next time.
    pub(crate) fn asks_others(&self) -> bool {
        self.host.is_some() || self.built_in.iter().any(SharedTool::waits)
    }

    /// Records results from now on, and replays those already recorded.
    pub(crate) fn record_to(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Returns the recorder of results, if the run has one.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// Returns what the rendering of rows depends on.
    ///
    /// # Errors
    /// If two tools have the same name.
    pub fn rows(&self) -> Result<AgentRows> {
        let offers = self.host.as_ref().map(Host::offers);
        let mut of_tools: Vec<Value> = self.built_in.iter().map(|made| made.schema().clone()).collect();
        let offered = offers.iter().flat_map(|offers| &offers.tools);
        of_tools.extend(offered.clone().map(|tool| tool.schema.clone()));
        let name = |schema: &Value| schema["function"]["name"].as_str().unwrap_or_default().to_owned();
        for (i, schema) in of_tools.iter().enumerate() {
            if of_tools[..i].iter().any(|other| name(other) == name(schema)) {
                bail!("two tools have the name {}: rename one in its schema, or remove it", name(schema));
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
        Ok(AgentRows { default: self.default.clone(), ignores_names: self.ignores_names, tools })
    }
}
