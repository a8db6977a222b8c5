//! Outputs of a command other than its results.

use super::log_file::LogFile;
use burnish_tracking::Progress;

/// Outputs of a command while it works: the progress bar and the log file.
#[derive(Clone, Debug)]
pub struct Output {
    pub progress: Progress,
    pub log: LogFile,
    /// False if a run leaves no record: no row, sample, state or log in its folder, and no tracker.
    pub records: bool,
}
