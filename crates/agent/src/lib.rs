//! Agents: responses of many turns, in which the model calls tools, answers a user, or plays in an environment.
//!
//! A conversation is driven by a loop ([`AgentLoop`], one file per kind in `loops`). The model samples a turn; the loop reads the
//! calls in it (`calls`), has them carried out (`tools`, in a process of the user's code: `session`), and says how the
//! conversation goes on: with which token ids (`tokens`). A program of the user may lead it instead, by OpenAI's protocol
//! (`program`, `endpoint`). [`Episode`] is what comes of it.
//!
//! The ids that were sampled are the ids that are trained: a turn is never decoded and encoded again, context is appended as ids.
//! Everything a conversation does depends on its own turns alone, so that neither its neighbours nor the time that a tool takes change it.

pub mod calls;
pub mod config;
mod conversations;
pub mod endpoint;
mod episode;
mod limits;
pub mod loops;
pub mod parties;
pub mod program;
pub mod recorded;
pub mod session;
pub mod tokens;
mod told;
pub mod tools;
mod training;
pub mod users;

pub use conversations::{Common, Conversations};
pub use episode::{CallRecord, End, Episode, Trouble, TurnReward};
pub use limits::{Limits, TruncateSide};
pub use loops::{AgentLoop, Ask, Next};
pub use told::Told;
pub use training::FAULT;
