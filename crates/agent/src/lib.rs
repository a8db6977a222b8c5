//! Agents: multi-turn responses, in which the model calls tools, talks with a simulated user, or plays in an environment.
//!
//! A loop drives each conversation ([`AgentLoop`], one file per kind in `loops`). The model samples a turn. The loop reads its
//! tool calls (`calls`) and runs them (`tools`; user code runs in a process of `session`). Then it appends the token ids that
//! continue the conversation (`tokens`). A program of the user may drive the conversation instead, by OpenAI's protocol
//! (`program`, `endpoint`). The result is an [`Episode`].
//!
//! The sampled ids are the ids that are trained: no turn is decoded and encoded again, and context is appended as ids. A
//! conversation depends only on its own turns: neither other conversations nor the duration of a tool call change it.

#[cfg(not(unix))]
compile_error!(
    "burnish-agent does not support this system, because conversations run in processes of Unix: on Windows, build burnish inside WSL 2"
);

pub mod calls;
pub mod config;
mod conversations;
pub mod endpoint;
mod episode;
mod limits;
pub mod loops;
pub mod participants;
pub mod program;
pub mod recorded;
pub mod session;
pub mod tokens;
pub mod tools;
mod training;
mod transcript;
pub mod users;

pub use conversations::{Conversations, SharedOptions};
pub(crate) use episode::ENVIRONMENT_REWARD;
pub use episode::{CallRecord, EndReason, Episode, FAULT, ReplyFailure, TurnReward};
pub use limits::{ConversationLimits, TruncateSide};
pub use loops::{AgentLoop, NextAction, SampleRequest};
pub use transcript::Transcript;
