//! Outputs of a command other than its results.

use super::log_file::LogFile;
use burnish_tracking::Progress;

/// Outputs of a command while it works: the progress bar and the log file.
#[derive(Clone, Debug)]
pub struct Output {
    pub progress: Progress,
    pub log: LogFile,
}
