//! The outputs of a command beside its results.

use super::log_file::LogFile;
use burnish_tracking::Progress;

/// The outputs of a command while it works: the progress bar and the log file.
#[derive(Clone, Debug)]
pub struct Output {
    pub progress: Progress,
    pub log: LogFile,
}
