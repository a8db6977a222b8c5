//! The record of a run in its folder: its facts, progress, log and end.
//!
//! ```text
//! <dir>/run.json       what the run is and how it stands ([`RunInfo`]), replaced as a whole
//! <dir>/phase.json     the step and the phase it is in ([`Phase`]), overwritten at every phase
//! <dir>/metrics.jsonl  one line per step, by the tracker `file`
//! <dir>/samples.jsonl  responses with their tokens ([`Sample`])
//! <dir>/trainer.log    what was logged, by all processes of the run
//! <dir>/earlier-ID/    the same of a run that did not finish and saved nothing, before this one began there ([`EarlierRun`])
//! ```
//!
//! Training reads none of it: a run is resumed from its checkpoint alone.

mod earlier;
mod info;
mod log_file;
mod output;
mod phase;
mod record;
mod sample;
mod stage;
mod watched;

pub use earlier::EarlierRun;
pub use info::{BestSoFar, Found, INFO, RecordedSetting, RunInfo, State};
pub use log_file::{LOG, LogFile, LogLine};
pub use output::Output;
pub use phase::{PHASE, Phase};
pub use record::Record;
pub use sample::{SAMPLES, Sample, Talk};
pub use stage::Stage;
pub use watched::Watched;

pub use burnish_tracking::METRICS;
