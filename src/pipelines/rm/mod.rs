//! Reward models: `trainer rm`. An outcome reward model learns from pairs of responses to score whole texts. A process reward model learns
//! from judged steps to judge each step of a text.
//!
//! | file | |
//! |---|---|
//! | `objective` | the stage |
//! | `example` | a tokenized row: a pair, or a text with steps |
//! | `form` | the task: the head of the model and its readout |
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
