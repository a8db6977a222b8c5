//! Record of a run in its folder: its facts, progress, log and end.
//!
//! ```text
//! <dir>/run.json       facts and state of the run ([`RunInfo`]), replaced as a whole
//! <dir>/phase.json     current step and phase ([`Phase`]), overwritten at every phase
//! <dir>/metrics.jsonl  one line per step, written by the tracker `file`
//! <dir>/samples.jsonl  responses with their tokens ([`Sample`])
//! <dir>/trainer.log    log of all processes of the run
//! <dir>/earlier-ID/    these files of an earlier run that neither finished nor saved ([`EarlierRun`])
//! <dir>/console.log    all that the job of a sweep printed
//! <dir>/../sweep.json  the jobs of a sweep ([`SweepRecord`])
//! ```
//!
//! Training does not read these files: a run is resumed only from its checkpoint.

mod earlier;
mod info;
mod log_file;
mod output;
mod phase;
mod record;
mod sample;
mod stage;
mod sweep;
mod watched;

pub use earlier::EarlierRun;
pub use info::{BestSoFar, INFO, ReadableRecord, RecordedAlarm, RecordedSetting, RunInfo, RunState};
pub use log_file::{LOG, LogFile, LogLine};
pub use output::Output;
pub use phase::{PHASE, Phase};
pub use record::Record;
pub use sample::{ConversationSample, SAMPLES, Sample};
pub use stage::RunStage;
pub use sweep::{CONSOLE, JobState, SWEEP, SweepJob, SweepRecord};
pub use watched::WatchedMetric;

pub use burnish_tracking::METRICS;
