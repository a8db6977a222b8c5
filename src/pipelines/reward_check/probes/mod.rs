//! The registry of probes, in the order in which they are made and shown. Probes that judge
//! all calls of the others come last.

mod abstains;
mod agreement;
mod all_answers;
mod batch_dependent;
mod code_runs;
mod constant;
mod constant_within_groups;
mod empty;
mod exception_on_empty;
mod exceptions;
mod format_without_content;
mod ground_truth_unused;
mod keywords;
mod length_bonus;
mod nan;
mod no_best;
mod nondeterministic;
mod order_dependent;
mod other_truths;
mod parallel;
mod part_of_truth;
mod praise;
mod prints;
mod prompt_copy;
mod range;
mod repeated_token;
mod seconds;
mod signal;
mod slow_growth;
mod slow_row;
mod state;
mod truth_in_rubbish;
mod very_long;

use super::probe::Probe;

/// All probes.
pub(super) static PROBES: &[&Probe] = &[
    &constant::PROBE,
    &constant_within_groups::PROBE,
    &slow_row::PROBE,
    &no_best::PROBE,
    &ground_truth_unused::PROBE,
    &signal::PROBE,
    &nondeterministic::PROBE,
    &state::PROBE,
    &order_dependent::PROBE,
    &batch_dependent::PROBE,
    &parallel::PROBE,
    &exception_on_empty::PROBE,
    &empty::PROBE,
    &prompt_copy::PROBE,
    &repeated_token::PROBE,
    &truth_in_rubbish::PROBE,
    &all_answers::PROBE,
    &other_truths::PROBE,
    &part_of_truth::PROBE,
    &format_without_content::PROBE,
    &keywords::PROBE,
    &praise::PROBE,
    &very_long::PROBE,
    &length_bonus::PROBE,
    &code_runs::PROBE,
    &exceptions::PROBE,
    &nan::PROBE,
    &abstains::PROBE,
    &agreement::PROBE,
    &range::PROBE,
    &prints::PROBE,
    &seconds::PROBE,
    &slow_growth::PROBE,
];
