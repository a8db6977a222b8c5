//! The token ids that continue a conversation: the difference of two renderings of the chat template, with the boundary rule of the model's
//! family. Sampled ids are never touched.
//!
//! [`Continuation`] does what verl 0.9.1 does (`verl/utils/tokenizer/continuous_token.py`), id by id; `trl` has TRL's rule beside it. Messages
//! are rendered in groups (`group`) behind a synthetic conversation (`synthetic`) by the `renderer`, which takes what tools write as text
//! and nothing else (`quoted`). What differs between families of models is a file in `families`. [`Sequence`] is a conversation in tokens.

mod appended;
mod check;
mod continuation;
pub mod families;
mod group;
mod quoted;
mod renderer;
mod rules;
mod sequence;
mod synthetic;
mod trl;

pub use appended::Appended;
pub use continuation::{Continuation, continued};
pub use quoted::Quoting;
pub use sequence::Sequence;
pub use trl::{is_prefix_preserving, trl_suffix, writes_tools};
