//! The checks. A new check is a file here and a line in [`CHECKS`]. A check that is made while a run trains has an [`Alarm`] in
//! its file, and a line in [`ALARMS`].

mod abstains;
mod against_aim;
mod alike_samples;
mod begin_token;
mod clipping;
mod constant_reward;
mod critic;
mod end_token;
mod engine_gap;
mod entropy;
mod environments;
mod equal_pairs;
mod first_step;
mod kl;
mod learning_rate;
mod length;
mod lengths;
mod missing_tag;
mod no_signal;
mod no_trained_token;
mod not_finite;
mod nothing_moves;
mod paid_length;
mod prefilled_tag;
mod rendered_rows;
mod same_pairs;
mod sampled_signal;
mod score_accuracy;
mod score_falls;
mod seen_validation;
mod share;
mod shared_rows;
mod speed;
mod start_warnings;
mod step_size;
mod text_prompt;
mod truncated;
mod untrained_rows;

use crate::alarms::Alarm;
use crate::check::Check;

/// All checks, in the order of the output.
pub static CHECKS: &[&Check] = &[
    &text_prompt::TEXT_PROMPT,
    &missing_tag::MISSING_TAG,
    &seen_validation::SEEN_VALIDATION,
    &no_trained_token::NO_TRAINED_TOKEN,
    &same_pairs::SAME_PAIRS,
    &constant_reward::CONSTANT_REWARD,
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
    &prefilled_tag::PREFILLED_TAG,
    &begin_token::BEGIN_TOKEN,
    &end_token::END_TOKEN,
    &lengths::LENGTHS,
    &shared_rows::SHARED_ROWS,
    &alike_samples::ALIKE_SAMPLES,
    &learning_rate::LEARNING_RATE,
    &against_aim::AGAINST_AIM,
    &untrained_rows::UNTRAINED_ROWS,
    &equal_pairs::EQUAL_PAIRS,
    &sampled_signal::SAMPLED_SIGNAL,
    &paid_length::PAID_LENGTH,
    &start_warnings::START_WARNINGS,
    &rendered_rows::RENDERED_ROWS,
];

/// The checks that are made after every step of a run.
pub static ALARMS: &[&Alarm] =
    &[&constant_reward::ALARM, &no_signal::ALARM, &truncated::ALARM, &not_finite::ALARM, &kl::ALARM, &score_accuracy::ALARM];
