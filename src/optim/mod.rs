//! The optimizer: AdamW with global-norm clipping, learning-rate schedules, and the model they train.

pub mod adamw;
pub mod learner;
pub mod schedule;

pub use adamw::{AdamW, AdamWConfig};
pub use learner::{Learner, Update};
pub use schedule::Schedule;
