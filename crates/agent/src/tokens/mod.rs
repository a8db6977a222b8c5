//! The token ids that continue a conversation: the difference of two renderings of the chat template, joined by the rules of the
//! model's family. Sampled ids never change.
//!
//! [`Continuation`] matches verl 0.9.1 (`verl/utils/tokenizer/continuous_token.py`) id by id; `trl` has TRL's rules. Messages are
//! rendered in groups (`group`) after a synthetic conversation (`synthetic`) by the `renderer`. It encodes special tokens in tool
//! messages as text (`escape`). Each family of models has a file in `families`. [`ConversationTokens`] is a conversation in
//! tokens.

mod appended;
mod check;
mod continuation;
mod escape;
pub mod families;
mod group;
mod renderer;
mod rules;
mod sequence;
mod synthetic;
mod trl_suffix;

pub use appended::Appended;
pub use continuation::{Continuation, continued};
pub use escape::SpecialTokenEscaper;
pub use sequence::ConversationTokens;
pub use trl_suffix::{is_prefix_preserving, trl_suffix, writes_tools};
