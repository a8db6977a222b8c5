//! Distillation on given texts: `trainer distill`. The loss is (1 − kd_coef)·NLL + kd_coef·D, where D is the divergence
//! between the teacher's distribution and the student's. Both terms are means over the trained tokens of the whole batch.
//!
//! The distribution that predicts a token counts if the token is trained. (OpenRLHF 0.5.3 does not shift the mask of its
//! divergence: it leaves out the first token of a response and counts the token after the end instead.)
//!
//! With `algorithm.loss_type=uld` the teacher has other tokens: `example` reads rows in both, `uld` is the loss of groups of
//! tokens, and `uld_pass` its passes.

mod example;
mod loss;
mod objective;
mod stored;
mod teacher;
mod teacher_tokens;
mod uld;
mod uld_pass;

pub use objective::{Distill, choices};
