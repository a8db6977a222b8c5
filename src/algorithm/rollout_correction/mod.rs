//! Correcting for the difference between the policy that generated and the policy that is trained.

/// What is done about the difference (`algorithm.rollout_correction`).
#[derive(Clone, Debug, PartialEq)]
pub struct RolloutCorrection {}

/// The loss below `bypass_mode` (`algorithm.rollout_correction.loss_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BypassLoss {
    PpoClip,
    Reinforce,
}
