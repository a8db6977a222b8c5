//! Checks that name why a run does not learn: before it, from its settings and rendered rows, and afterwards, from its metrics.
//!
//! Reading order: a [`Check`] is an entry of the registry [`CHECKS`], one file under `checks/`. It judges [`Evidence`] and nothing
//! else, and its [`Finding`] has a [`Verdict`], a sentence and a remedy. `read/` gathers evidence from the folder of a run, of
//! burnish or of another library; `trainer doctor` gathers evidence about a configuration and fills [`Facts`].
//! [`ALARMS`] are checks that an [`AlarmWatch`] makes after every step of a run.

mod alarms;
mod check;
mod checks;
mod diagnose;
mod evidence;
mod finding;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod made_up_tests;
mod page;
mod phase;
mod read;

pub use alarms::{Alarm, AlarmWatch, RaisedAlarm};
pub use check::Check;
pub use checks::{ALARMS, CHECKS};
pub use diagnose::{Diagnosis, diagnose};
pub use evidence::{
    AnswerLengths, BeginTokens, ChangedRows, EndTokens, Evidence, Facts, KnownPrompt, LengthenedResponses, MetricRow, PlanFacts,
    RatePlan, RunLibrary, SampledGroups, SharedRows, ShownRow, TagInPrompts,
};
pub use finding::{Finding, Verdict};
pub use phase::CheckPhase;
pub use read::read;
