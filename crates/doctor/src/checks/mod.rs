//! The checks. A new check is a file here and a line in [`CHECKS`].

mod abstains;
mod clipping;
mod critic;
mod engine_gap;
mod entropy;
mod environments;
mod first_step;
mod kl;
mod length;
mod missing_tag;
mod no_signal;
mod no_trained_token;
mod not_finite;
mod nothing_moves;
mod same_pairs;
mod score_accuracy;
mod score_falls;
mod seen_validation;
mod speed;
mod step_size;
mod text_prompt;
mod truncated;

use super::check::{Check, CheckPhase};

/// Phases of a check that reads settings or facts about rows: they are known before a run, and some after it.
const ALWAYS: &[CheckPhase] = &[CheckPhase::Before, CheckPhase::After];
/// Phases of a check that reads metrics.
const AFTER: &[CheckPhase] = &[CheckPhase::After];

/// All checks, in the order of the output.
pub const CHECKS: &[&Check] = &[
    &text_prompt::TEXT_PROMPT,
    &missing_tag::MISSING_TAG,
    &seen_validation::SEEN_VALIDATION,
    &no_trained_token::NO_TRAINED_TOKEN,
    &same_pairs::SAME_PAIRS,
    &no_signal::NO_SIGNAL,
    &abstains::ABSTAINS,
    &truncated::TRUNCATED,
    &first_step::FIRST_STEP,
    &step_size::STEP_SIZE,
    &nothing_moves::NOTHING_MOVES,
    &not_finite::NOT_FINITE,
    &kl::KL,
    &entropy::ENTROPY,
    &length::LENGTH,
    &score_falls::SCORE_FALLS,
    &score_accuracy::SCORE_ACCURACY,
    &clipping::CLIPPING,
    &engine_gap::ENGINE_GAP,
    &critic::CRITIC,
    &environments::ENVIRONMENTS,
    &speed::SPEED,
];
