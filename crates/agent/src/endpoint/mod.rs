//! OpenAI's protocol, without a network: requests to tokens, tokens to replies, and the record of served conversations.
//!
//! A body becomes a [`ChatRequest`] or a [`TextRequest`], then the ids of its prompts and a
//! [`Sampling`](burnish_rollout::Sampling). The sampled response becomes a [`Completion`], which is sent as JSON ([`reply_json`])
//! or as the chunks of a stream ([`ChunkWriter`]). A [`EndpointModel`] has everything that both directions need.
//! [`ServedConversations`] keeps the exact ids of all turns, so that even a program that does not handle tokens leaves
//! trajectories for training.
//!
//! Fields and their meaning follow OpenAI's API reference; further fields have vLLM's names.

mod api;
mod body_json;
mod choice_text;
mod completion;
mod conversation_key;
mod error;
mod fields;
mod http_reply;
mod log_probs;
mod messages;
mod model;
mod options;
mod render;
mod reply_json;
mod reply_scores;
mod request;
mod sampling_check;
mod served_conversations;
mod stream;
mod stream_text;
mod tokenize;
mod tree;
mod turn_index;

pub use api::Api;
pub use choice_text::ChoiceText;
pub use completion::{CallParser, Completion, ResponseParser};
pub use conversation_key::CONVERSATION_HEADER;
pub use error::ApiError;
pub use http_reply::HttpReply;
pub use messages::for_template;
pub use model::{EndpointModel, ModelMemory, ParsedRequest, TemplateSetting, digest};
pub use options::{RequestDefaults, RequestOptions};
pub use render::{PromptRenderer, PromptTokens};
pub use reply_json::{ReplyHead, reply_json};
pub use request::{ChatRequest, CompletionPrompt, TextRequest};
pub(crate) use sampling_check::check_sampling;
pub use served_conversations::{ContinuationKind, SamplingStart, ServedConversations, ServedTrajectories};
pub use stream::ChunkWriter;
pub use tree::Trajectory;
