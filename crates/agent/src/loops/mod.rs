//! The kinds of conversations, one file each, and their shared parts: the record of a conversation (`episode_record`), remaining
//! limits (`budget`), and the reading and continuing of tokens (`codec`, `chat`, `trl_chat`). Custom loops also use sampling
//! parameters (`sampling_params`), tokenizer requests (`tokens`), the sampled turns (`sampled_turns`), and messages built from
//! tokens (`pieces`).

mod agent_loop;
mod answer_calls;
mod arguments;
mod budget;
mod chat;
mod codec;
mod custom_loop;
mod deferred;
mod episode_record;
#[cfg(test)]
mod example;
mod openai_loop;
mod run_calls;
mod sampled_turns;
mod sampling_params;
mod single_turn;
mod text_environment;
mod token_messages;
mod tokens;
mod tool_agent;
mod trl_chat;
mod trl_loop;

pub use agent_loop::{AgentLoop, NextAction, SampleRequest, StopCondition};
pub use answer_calls::answer_calls;
pub use chat::{Chat, TemplateChat};
pub use codec::Codec;
pub use custom_loop::CustomLoop;
pub use deferred::{Begin, DeferredLoop};
pub use episode_record::EpisodeRecord;
pub use openai_loop::{BRANCHES, BeginProgram, OpenAiLoop, OpenAiOptions};
pub use sampling_params::params_from;
pub use single_turn::SingleTurn;
pub use text_environment::TextEnvironmentLoop;
pub use tokens::{TemplateTokenService, TokenService};
pub use tool_agent::ToolAgent;
pub use trl_chat::{ResponseTemplateChat, TrlChat, TrlTurn};
pub use trl_loop::{EnvironmentReward, TrlLoop};
