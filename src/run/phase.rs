//! phase.json: the step and the phase a run is in. It is overwritten in place, since it changes many times a step: a few microseconds
//! each, where a file that is replaced would cost a step of its own.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The file, in the folder of the run.
pub const PHASE: &str = "phase.json";

/// Where a run is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The step it is in.
    pub step: u64,
    /// As in `timing_s/PHASE`.
    pub phase: String,
    /// When it began, in seconds since 1970.
    #[serde(with = "crate::util::json_number")]
    pub time: f64,
}

impl Phase {
    /// That of the run in this folder, where it is known.
    pub fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(dir.join(PHASE)).ok()?).ok()
    }
}

/// The file of a run that goes on.
#[derive(Debug)]
pub(super) struct PhaseFile(File);

/// A line is filled up to this, so that a shorter one hides all of a longer one.
const WIDTH: usize = 127;

impl PhaseFile {
    pub fn create(dir: &Path) -> Result<Self> {
        let path = dir.join(PHASE);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        Ok(Self(file.with_context(|| format!("cannot write {}", path.display()))?))
    }

    /// Overwrites it; an error is of no consequence.
    pub fn write(&self, phase: &Phase) {
        let line = serde_json::to_string(phase).unwrap_or_default();
        _ = self.0.write_all_at(format!("{line:WIDTH$}\n").as_bytes(), 0);
    }
}
