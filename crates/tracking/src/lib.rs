//! Trackers: the destinations of each step's metrics. Every destination is one file and one line of [`TRACKERS`].
//!
//! A run opens the trackers that its `trainer.logger` names, and logs one [`Metrics`] per step to all of them. If a run is
//! resumed, trackers that write files continue them, without the rows that the resumed run will write again. If a tracker fails
//! during the run, a warning is logged, the failure is counted, and the run continues.

#[cfg(not(unix))]
compile_error!(
    "burnish-tracking does not support this system, because trackers run in process groups of Unix: on Windows, build burnish inside WSL 2"
);

mod bridge;
mod console;
mod ending;
#[cfg(test)]
mod example;
mod file;
mod metrics;
mod mlflow;
mod outbox;
mod progress;
mod registry;
mod session;
mod table;
mod tensorboard;
mod tracker;
mod trackers;
mod wandb;

pub use ending::{Ending, Exit};
pub use file::{METRICS, place as metrics_file};
pub use metrics::Metrics;
pub use progress::{AboveBar, Progress};
pub use registry::{TRACKERS, choices};
pub use session::TrackedRun;
pub use table::{Cell, StepTable};
pub use tracker::{Tracker, TrackerEntry};
pub use trackers::Trackers;
pub use wandb::wandb_records;
