//! The kinds of conversations, one file each, and what they share: how a conversation is recorded (`record`), what of its length is left
//! (`budget`), and how a model's tokens are read and continued (`codec`, `chat`, `trl_chat`).

mod agent_loop;
mod arguments;
mod budget;
mod carry_out;
mod chat;
mod codec;
mod deferred;
mod record;
mod single_turn;
mod text_environment;
mod tool_agent;
mod trl;
mod trl_chat;

pub use agent_loop::{AgentLoop, Ask, Next};
pub use chat::{Chat, TemplateChat};
pub use codec::Codec;
pub use deferred::{Begin, Deferred};
pub use record::{FAULT, Record};
pub use single_turn::SingleTurn;
pub use text_environment::TextEnvironmentLoop;
pub use tool_agent::ToolAgent;
pub use trl::{EnvironmentReward, Trl};
pub use trl_chat::{ResponseTemplateChat, Said, TrlChat};
