//! The kinds of conversations, one file each, and what they share: how a conversation is recorded (`record`), what of its length
//! is left (`budget`), how a model's tokens are read and continued (`codec`, `chat`, `trl_chat`), and for loops of the user's own
//! how a single turn is sampled (`sampled`), what the tokenizer answers (`tokens`), what was sampled (`served`), and the messages of tokens
//! (`pieces`).

mod agent_loop;
mod arguments;
mod budget;
mod carry_out;
mod chat;
mod codec;
mod deferred;
#[cfg(test)]
mod example;
mod own;
mod pieces;
mod record;
mod sampled;
mod served;
mod server_agent;
mod single_turn;
mod text_environment;
mod tokens;
mod tool_agent;
mod trl;
mod trl_chat;

pub use agent_loop::{AgentLoop, Ask, AskStops, Next};
pub use chat::{Chat, TemplateChat};
pub use codec::Codec;
pub use deferred::{Begin, Deferred};
pub use own::OwnAgent;
pub use record::{FAULT, Record};
pub use sampled::params_of;
pub use server_agent::{BRANCHES, BeginProgram, ServerAgent, ServerOptions};
pub use single_turn::SingleTurn;
pub use text_environment::TextEnvironmentLoop;
pub use tokens::{TemplateTokens, Tokens};
pub use tool_agent::ToolAgent;
pub use trl::{ENVIRONMENT_REWARD, EnvironmentReward, Trl};
pub use trl_chat::{ResponseTemplateChat, Said, TrlChat};
