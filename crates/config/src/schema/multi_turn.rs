//! `actor_rollout_ref.rollout.multi_turn.*`: conversations with tools and users. Meaning and defaults:
//! `config/rollout/rollout.yaml`.

use super::types::{Location, choices};
use serde::{Deserialize, Serialize};

/// The key of the format of the model's tool calls.
pub const FORMAT: &str = "actor_rollout_ref.rollout.multi_turn.format";

/// The tools and users of conversations, and their limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiTurnConfig {
    pub enable: bool,
    pub max_assistant_turns: Option<usize>,
    pub max_user_turns: Option<usize>,
    pub max_parallel_calls: usize,
    pub max_tool_response_length: usize,
    pub tool_response_truncate_side: ToolResponseTruncateSide,
    pub tool_config_path: Option<Location>,
    pub function_tool_path: Option<Location>,
    pub interaction_config_path: Option<Location>,
    pub format: String,
}

impl MultiTurnConfig {
    /// Returns the maximum number of turns of the model; `None` without a limit.
    pub fn assistant_turns(&self) -> Option<usize> {
        self.max_assistant_turns.filter(|&max| max > 0)
    }

    /// Returns the maximum number of turns of tools and users; `None` without a limit.
    pub fn user_turns(&self) -> Option<usize> {
        self.max_user_turns.filter(|&max| max > 0)
    }
}

choices! {
    /// The removed part of a long tool result, by the names of verl 0.8 and later.
    pub enum ToolResponseTruncateSide {
        Left = "left",
        Middle = "middle",
        Right = "right",
    }
}
