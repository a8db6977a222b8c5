//! sweep.json: the jobs of a sweep and their states, in the folder that holds the folders of the jobs.

use std::path::{Component, Path};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use burnish_util::fs::read_json;
use burnish_util::no_follow;
use burnish_util::secret::hide;

/// Name of the file in the sweep's folder.
pub const SWEEP: &str = "sweep.json";

/// Name of the file in a job's folder with all that the job printed.
pub const CONSOLE: &str = "console.log";

/// A sweep: several runs of one command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// Version of burnish.
    pub version: String,
    /// Command line of the last process.
    pub command: Vec<String>,
    /// Swept keys, in the order of the command line.
    pub keys: Vec<String>,
    /// Jobs in Hydra's order.
    pub jobs: Vec<SweepJob>,
}

/// A run of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepJob {
    /// Name of the folder below that of the sweep.
    pub name: String,
    /// Text of the value of each swept key.
    pub values: Vec<String>,
    /// Checksum of all settings, without values from the environment.
    pub settings: String,
    pub state: JobState,
    /// Unique name of the last process, on systems that have such names.
    pub process: Option<String>,
}

/// State of a job when its sweep last looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    Waiting,
    Running,
    Finished,
    Interrupted,
    Failed,
}

fn is_folder_name(name: &str) -> bool {
    Path::new(name).components().eq([Component::Normal(name.as_ref())])
}

impl SweepRecord {
    /// Reads the record of the sweep in this folder.
    ///
    /// # Errors
    /// If the record is missing or damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        let record: Self = read_json(&dir.join(SWEEP))?;
        let is_whole = |job: &SweepJob| job.values.len() == record.keys.len() && is_folder_name(&job.name);
        ensure!(
            record.jobs.iter().all(is_whole),
            "{} is damaged: a job lacks a value, or its name is not that of a folder",
            dir.join(SWEEP).display()
        );
        Ok(record)
    }

    /// Replaces the record of the sweep in this folder. Secrets are hidden.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        no_follow::write(&dir.join(SWEEP), &serde_json::to_vec_pretty(&self.hidden())?)
    }

    /// Returns the record in its written form, without secrets.
    #[must_use]
    pub fn hidden(&self) -> Self {
        let texts = |texts: &[String]| texts.iter().map(|text| hide(text).into_owned()).collect();
        let job = |job: &SweepJob| SweepJob { values: texts(&job.values), ..job.clone() };
        Self { command: texts(&self.command), jobs: self.jobs.iter().map(job).collect(), ..self.clone() }
    }
}
