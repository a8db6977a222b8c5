//! sweep.json: the jobs of a sweep and their states, in the folder that holds the folders of the jobs.

use std::collections::HashSet;
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

/// Largest number of jobs: that of a sweep's grammar.
const MOST_JOBS: usize = 1000;

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
        let mut names = HashSet::new();
        ensure!(
            record.jobs.len() <= MOST_JOBS && record.jobs.iter().all(|job| names.insert(job.name.as_str())),
            "{} is damaged: it has more than {MOST_JOBS} jobs, or two jobs with the same folder",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A report reads the folder of each job: 100,000 jobs with one folder took 5 GB.
    #[test]
    fn a_record_has_few_jobs_with_own_folders() {
        let dir = tempfile::tempdir().unwrap();
        let job =
            |name: String| SweepJob { name, values: vec![], settings: String::new(), state: JobState::Finished, process: None };
        let read = |names: &mut dyn Iterator<Item = usize>| {
            let jobs = names.map(|i| job(format!("seed-{i}"))).collect();
            let record = SweepRecord { version: String::new(), command: vec![], keys: vec![], jobs };
            record.write(dir.path()).unwrap();
            SweepRecord::read(dir.path()).map(|read| read.jobs.len()).map_err(|error| error.to_string())
        };
        assert_eq!(read(&mut (0..MOST_JOBS)), Ok(MOST_JOBS));
        for mut names in [Box::new(0..=MOST_JOBS) as Box<dyn Iterator<Item = usize>>, Box::new([1, 2, 1].into_iter())] {
            let error = read(&mut names).unwrap_err();
            assert!(error.contains("sweep.json is damaged: it has more than 1000 jobs"), "{error}");
        }
    }
}
