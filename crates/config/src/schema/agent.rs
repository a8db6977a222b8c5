//! `actor_rollout_ref.rollout.agent.*`: agent loops, and the tools and environments of users' Python files. Meaning and defaults:
//! `config/rollout/rollout.yaml`.

use super::multi_turn::MultiTurnConfig;
use super::types::{Location, choices};
use serde::{Deserialize, Serialize};

/// The key of the default agent loop.
pub const DEFAULT_AGENT_LOOP: &str = "actor_rollout_ref.rollout.agent.default_agent_loop";

/// The loop with a single turn.
const SINGLE_TURN: &str = "single_turn_agent";
/// The loop with tools and simulated users.
const TOOLS: &str = "tool_agent";
/// The loop with an environment whose methods are tools.
const ENVIRONMENT: &str = "environment_agent";
/// The loop with an environment of texts.
const TEXT_ENVIRONMENT: &str = "text_environment_agent";

/// The loop of a program that sends its own requests to the model.
const SERVER: &str = "server_agent";

/// The loops that are built in.
pub const AGENT_LOOPS: [&str; 5] = [SINGLE_TURN, TOOLS, ENVIRONMENT, TEXT_ENVIRONMENT, SERVER];

/// The agent loops and their settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    pub default_agent_loop: String,
    pub read_agent_name: bool,
    pub agent_loop_config_path: Option<Location>,
    pub call_timeout: f64,
    pub conversation_timeout: Option<f64>,
    pub memory_limit_mb: Option<u64>,
    pub start_method: AgentStartMethod,
    pub functions_path: Option<Location>,
    pub functions: Vec<String>,
    pub environment: EnvironmentConfig,
    pub max_tool_calling_iterations: Option<usize>,
    pub agent_func_path: Option<Location>,
    pub server: ServerConfig,
    pub ignore_calls_in_thinking: bool,
    pub tell_unreadable_calls: bool,
    pub neutralise_control_tokens: bool,
}

/// A class of environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentConfig {
    pub path: Option<Location>,
    pub name: Option<String>,
}

/// A function that runs conversations itself, by requests to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    pub path: Option<Location>,
    pub name: String,
    pub scores: Option<bool>,
}

choices! {
    /// The start method of processes with users' Python files.
    pub enum AgentStartMethod {
        Auto = "auto",
        Fork = "fork",
        Spawn = "spawn",
    }
}

/// The settings of conversations.
#[derive(Debug, Clone, Copy)]
pub struct AgentKeys<'a> {
    /// The dotted key of the group of these settings, in training or in `trainer generate`.
    pub group: &'static str,
    pub multi_turn: &'a MultiTurnConfig,
    pub agent: &'a AgentConfig,
}

/// The agent loop of rows that do not name one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopChoice<'a> {
    pub name: &'a str,
    /// True if `multi_turn.enable` selected this loop instead of `agent.default_agent_loop`. The run reports it.
    pub by_enable: bool,
}

impl<'a> AgentKeys<'a> {
    /// Returns the settings that add a tool, a user, an environment or a loop: the end of the key, true if it is set, and the
    /// loop that reads it (`None` for the user's loops).
    fn sources(&self) -> [(&'static str, bool, Option<&'static str>); 8] {
        let (multi_turn, agent) = (self.multi_turn, self.agent);
        [
            ("multi_turn.tool_config_path", multi_turn.tool_config_path.is_some(), Some(TOOLS)),
            ("multi_turn.function_tool_path", multi_turn.function_tool_path.is_some(), Some(TOOLS)),
            ("multi_turn.interaction_config_path", multi_turn.interaction_config_path.is_some(), Some(TOOLS)),
            ("agent.functions_path", agent.functions_path.is_some(), Some(TOOLS)),
            ("agent.environment.path", agent.environment.path.is_some(), Some(ENVIRONMENT)),
            ("agent.agent_func_path", agent.agent_func_path.is_some(), Some(TEXT_ENVIRONMENT)),
            ("agent.server.path", agent.server.path.is_some(), Some(SERVER)),
            ("agent.agent_loop_config_path", agent.agent_loop_config_path.is_some(), None),
        ]
    }

    /// Returns the set keys that this built-in loop reads, without [`group`](Self::group). A set key is an error if neither
    /// [`default_loop`](Self::default_loop) nor a row uses its loop.
    pub fn read_by(&self, name: &str) -> Vec<&'static str> {
        self.sources().iter().filter(|(_, is_set, reader)| *is_set && *reader == Some(name)).map(|(key, ..)| *key).collect()
    }

    /// True if a setting adds a tool, a user, an environment or a loop.
    pub fn has_any(&self) -> bool {
        self.sources().iter().any(|(_, is_set, _)| *is_set)
    }

    /// True if an environment, a program or a user's loop is set. These get every column of their row.
    pub fn read_columns(&self) -> bool {
        let agent = self.agent;
        agent.environment.path.is_some() || agent.server.path.is_some() || agent.agent_loop_config_path.is_some()
    }

    /// Returns the agent loop of rows that do not name one.
    pub fn default_loop(&self) -> LoopChoice<'a> {
        let name = self.agent.default_agent_loop.as_str();
        let is_open = self.multi_turn.enable && name == SINGLE_TURN;
        let of_settings = || AGENT_LOOPS.into_iter().find(|name| !self.read_by(name).is_empty());
        match is_open.then(of_settings).flatten() {
            Some(name) => LoopChoice { name, by_enable: true },
            None => LoopChoice { name, by_enable: false },
        }
    }

    /// Returns the keys that a built-in loop reads; at least one must be set. Empty if the loop needs no setting.
    pub fn needed_by(&self, name: &str) -> Vec<&'static str> {
        self.sources().iter().filter(|(.., reader)| *reader == Some(name)).map(|(key, ..)| *key).collect()
    }
}
