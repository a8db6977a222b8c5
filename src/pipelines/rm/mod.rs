//! Reward models: `trainer rm`. From pairs of answers it learns to score whole texts (an outcome reward model), from judged steps to
//! judge each step of a text (a process reward model).
//!
//! | file | |
//! |---|---|
//! | `objective` | the stage |
//! | `example` | a row in tokens: a pair, or a text with steps |
//! | `form` | what the settings make of the model: the head, and what is read of it |
//! | `rows` | rows from the settings of `data` |
//! | `pairs`, `steps` | the loss of a batch of each |
//! | `padding` | the token that transformers may pad texts with |

mod example;
mod form;
mod objective;
mod padding;
mod pairs;
mod rows;
mod steps;

pub use objective::{Rm, choices};
