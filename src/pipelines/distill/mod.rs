//! Distillation on given texts: `trainer distill`. The loss is (1 − kd_coef)·NLL + kd_coef·D, where D is the divergence
//! between the teacher's distribution and the student's. Both terms are means over the trained tokens of the whole batch.
//!
//! The distribution that predicts a token counts if the token is trained. (OpenRLHF 0.5.3 does not shift the mask of its
//! divergence: it leaves out the first token of a response and counts the token after the end instead.)

mod loss;
mod objective;
mod stored;
mod teacher;

pub use objective::{Distill, choices};
