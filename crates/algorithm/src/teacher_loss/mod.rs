//! Losses of on-policy distillation that read the teacher's probability of the sampled token and define its gradient. A loss
//! is one file and one line in [`TEACHER_LOSSES`]. It gets whole sequences; the caller weights and adds up the tokens.

mod entry;
mod iw_opd;
mod ref_kl;
mod sampled_token;

pub use entry::{TeacherColumns, TeacherLoss, TeacherLossOutput, importance_weights};

/// Every loss of this kind that `distillation.distillation_loss.loss_mode` can name.
pub static TEACHER_LOSSES: &[TeacherLoss] = &[ref_kl::LOSS, sampled_token::LOSS, iw_opd::LOSS];

/// Returns the loss with this name.
pub fn find(name: &str) -> Option<&'static TeacherLoss> {
    TEACHER_LOSSES.iter().find(|loss| loss.name == name)
}
