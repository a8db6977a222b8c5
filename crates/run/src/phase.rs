//! phase.json: the current step and phase of a run. It is overwritten in place, since it changes many times a step. This takes a
//! few microseconds; replacing the file would take as long as a short step.

use std::fs::{File, OpenOptions};
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use burnish_util::foreign;
use burnish_util::no_follow;
use burnish_util::platform::write_all_at;

/// Name of the file in the run's folder.
pub const PHASE: &str = "phase.json";

/// Position of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Current step.
    pub step: u64,
    /// Name of the phase, as in `timing_s/PHASE`.
    pub phase: String,
    /// Time when the phase began, in seconds since 1970.
    #[serde(with = "burnish_util::json_number")]
    pub time: f64,
}

impl Phase {
    /// Reads the position of the run in this folder, if it is known.
    pub fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&foreign::read(&dir.join(PHASE), foreign::WORD).ok()?).ok()
    }
}

/// The open phase.json of an active run.
#[derive(Debug)]
pub(super) struct PhaseFile(File);

/// Length to which a line is padded, so that a shorter one overwrites all of a longer one.
const WIDTH: usize = 127;

impl PhaseFile {
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        let path = dir.join(PHASE);
        no_follow::open(&path, OpenOptions::new().write(true).create(true).truncate(true)).map(Self)
    }

    /// Overwrites the file; errors are ignored.
    pub(crate) fn write(&self, phase: &Phase) {
        let line = serde_json::to_string(phase).unwrap_or_default();
        _ = write_all_at(&self.0, format!("{line:WIDTH$}\n").as_bytes(), 0);
    }
}
