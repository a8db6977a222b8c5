//! The checks. A new check is a file here and a line in [`CHECKS`].

mod no_signal;
mod text_prompt;

use super::check::{Check, CheckPhase};

/// Phases of a check that reads settings or facts about rows: they are known before a run, and some after it.
const ALWAYS: &[CheckPhase] = &[CheckPhase::Before, CheckPhase::After];
/// Phases of a check that reads metrics.
const AFTER: &[CheckPhase] = &[CheckPhase::After];

/// All checks, in the order of the output.
pub const CHECKS: &[&Check] = &[&text_prompt::TEXT_PROMPT, &no_signal::NO_SIGNAL];
