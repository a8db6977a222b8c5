//! The steps between scores and advantages: penalties for length, normalisation, clipping; and the normalisation of advantages.
//!
//! One file per step. The steps on scores of sequences are switched on in [`RewardShaping`], which fixes their order; the two on
//! token columns, [`whiten_rewards()`] and [`NormalizeAdvantages`], come later in a training step. [`LengthPenalty`], which compares
//! the responses to a prompt, comes between: after the steps on single scores and before those over the batch. A sequence without a score
//! (`None`: every reward function abstained) stays without one and is left out of all statistics.

mod length_penalty;
mod missing_eos;
mod normalize_advantages;
mod normalize_reward;
mod overlong;
mod reward_clip;
mod scores;
mod shaping;
mod stop_properly;
mod teacher_kl;
mod whiten_rewards;

pub use length_penalty::{LengthPenalty, ResponseSize};
pub use normalize_advantages::NormalizeAdvantages;
pub use overlong::{Extras, OverlongBuffer};
pub use scores::RewardShaping;
pub use shaping::Shaping;
pub use teacher_kl::subtract_teacher_kl;
pub use whiten_rewards::whiten_rewards;

/// All steps, in the order in which they are applied.
pub static SHAPINGS: &[Shaping] = &[
    overlong::SHAPING,
    stop_properly::SHAPING,
    missing_eos::SHAPING,
    length_penalty::SHAPING,
    normalize_reward::SHAPING,
    reward_clip::SHAPING,
    whiten_rewards::SHAPING,
    teacher_kl::SHAPING,
    normalize_advantages::SHAPING,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_says_what_it_is() {
        for Shaping { name, doc } in SHAPINGS {
            let from =
                ["\nverl: ", "\nTRL: ", "\nOpenRLHF: ", "\nprime-rl: ", "\nslime: "].iter().any(|source| doc.contains(source));
            assert!(from && doc.contains("\nFormula: ") && doc.contains("\nWhen: "), "{name}");
            assert_eq!(SHAPINGS.iter().filter(|other| other.name == *name).count(), 1, "{name}");
        }
    }
}
