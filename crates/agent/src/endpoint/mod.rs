//! OpenAI's protocol, without a network: requests to tokens, tokens to answers, and the record of what was served.
//!
//! A body becomes a [`ChatRequest`] or a [`TextRequest`], and that the ids of its prompts and a
//! [`Sampling`](burnish_rollout::Sampling). What was sampled becomes a [`Reply`], and a reply the JSON of an answer ([`answer`])
//! or the chunks of a stream ([`ChunkWriter`]). A [`Model`] has what both directions need. [`Record`] keeps the exact ids of what
//! was served, so that a program which knows nothing of tokens leaves trajectories to train on.
//!
//! Fields and their meaning are those of OpenAI's API reference; further ones are vLLM's, by their names there.

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
