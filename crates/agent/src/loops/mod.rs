//! The kinds of conversations, one file each, and their shared parts: the record of a conversation (`episode_record`), remaining
//! limits (`budget`), and the reading and continuing of tokens (`codec`, `chat`, `trl_chat`). Custom loops also use sampling
//! parameters (`sampling_params`), tokenizer requests (`tokens`), the sampled turns (`sampled_turns`), and messages built from
//! tokens (`pieces`).

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
