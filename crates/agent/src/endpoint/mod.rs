//! OpenAI's protocol, without a network: requests to tokens, tokens to replies, and the record of served conversations.
//!
//! A body becomes a [`ChatRequest`] or a [`TextRequest`], then the ids of its prompts and a
//! [`Sampling`](burnish_rollout::Sampling). The sampled response becomes a [`Completion`], which is sent as JSON ([`reply_json`])
//! or as the chunks of a stream ([`ChunkWriter`]). A [`Model`] has everything that both directions need. [`ServedConversations`]
//! keeps the exact ids of all turns, so that even a program that does not handle tokens leaves trajectories for training.
//!
//! Fields and their meaning follow OpenAI's API reference; further fields have vLLM's names.

mod answer;
mod conversation_key;
mod fields;
mod messages;
mod model;
mod options;
mod own_sampling;
mod record;
mod refused;
mod render;
mod reply;
mod request;
mod sent;
mod stream;
mod stream_text;
mod tree;

pub use answer::{Answered, Api, answer};
pub use conversation_key::{CONVERSATION, conversation_key};
pub use messages::for_template;
pub use model::{Asked, Memory, Model, digest};
pub use options::{Defaults, Options};
pub use own_sampling::check_sampling;
pub use record::{Record, Start, Way};
pub use refused::Refused;
pub use render::{Prompt, Renderer};
pub use reply::{CallReading, Reading, Reply};
pub use request::{ChatRequest, PromptText, TextRequest};
pub use sent::Sent;
pub use stream::ChunkWriter;
pub use stream_text::StreamText;
pub use tree::Trajectory;
