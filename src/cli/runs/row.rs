//! A run as the lists of runs show it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use burnish_checkpoint::CheckpointEntry;
use burnish_report::disk::bytes_of;
use burnish_report::record::RecordedRun;
use burnish_report::series::{Series, read_end};
use burnish_report::sweep::folder_of;
use burnish_util::json_number;
use burnish_util::number::short;
use burnish_util::time::{human, unix_time};

/// The metrics that can represent the reward, the most informative first: the score, the reward that PPO learns from, and the
/// loss of supervised runs.
const REWARDS: &[&str] = &["critic/score/mean", "critic/rewards/mean", "train/loss"];

pub(super) struct RunRow {
    pub record: RecordedRun,
    /// The metrics of the last steps.
    pub series: Series,
}

impl RunRow {
    pub(super) fn read(dir: &Path) -> Self {
        let record = RecordedRun::read(dir);
        let mut series = Series::default();
        let read = read_end(&record.metrics, &mut series).err().map(|error| format!("{error:#}"));
        record.problems.iter().chain(&read).for_each(|problem| tracing::warn!("{problem}"));
        Self { record, series }
    }

    /// The start of the run in Unix seconds, or the best known estimate of it.
    pub(super) fn began(&self) -> f64 {
        self.record.started().or(self.record.touched).unwrap_or(0.0)
    }

    pub(super) fn reward(&self) -> Option<(&'static str, f64)> {
        REWARDS.iter().find_map(|name| Some((*name, self.series.last(name)?.1)))
    }

    /// Returns the row of `runs ls --json`.
    pub(super) fn object(&self) -> Value {
        let mut object = self.record.head(&self.series);
        object["reward"] =
            json!(self.reward().map(|(metric, value)| json!({"metric": metric, "value": json_number::to_value(value)})));
        object["duration_s"] = json!(self.record.worked());
        object["sweep"] = json!(folder_of(&self.record.dir).map(|folder| folder.display().to_string()));
        object["bytes"] = json!(bytes_of(&self.record.dir));
        object
    }

    /// Returns the row of `runs show --json`, which also has the checkpoints and the metrics of the last step.
    pub(super) fn full_object(&self) -> Value {
        let mut object = self.object();
        let checkpoint = |found: &CheckpointEntry| json!({"dir": found.dir, "step": found.step, "bytes": found.bytes});
        object["checkpoints"] = self.record.checkpoints.iter().map(checkpoint).collect();
        let last = self.series.last_step().into_iter().flat_map(|step| self.series.at(step));
        let metrics: Map<String, Value> = last.map(|(name, value)| (name.to_owned(), json_number::to_value(value))).collect();
        object["metrics"] = metrics.into();
        object
    }

    /// Returns the step, with the planned number of steps if it is known.
    pub(super) fn step(&self) -> String {
        let step = self.record.step(&self.series).map_or_else(unknown, |step| step.to_string());
        self.record.total_steps().map_or_else(|| step.clone(), |total| format!("{step}/{total}"))
    }

    /// Returns the best validation with its step, or else the last reward or loss.
    pub(super) fn score(&self) -> String {
        let best = self.record.info.as_ref().and_then(|info| info.best.as_ref());
        let reward = || {
            self.reward().map_or_else(unknown, |(name, value)| match name {
                "train/loss" => format!("loss {}", short(value)),
                _ => short(value),
            })
        };
        best.map_or_else(reward, |best| format!("{} at {}", short(best.value), best.step))
    }

    pub(super) fn age(&self) -> String {
        self.record.started().map_or_else(unknown, |started| duration(unix_time() - started))
    }

    pub(super) fn took(&self) -> String {
        self.record.worked().map_or_else(unknown, duration)
    }
}

/// Returns the folder that holds all these runs, and the name of each run below it. A single run keeps its whole path.
pub(super) fn names(runs: &[&RunRow]) -> (Option<PathBuf>, Vec<String>) {
    let parent = |run: &&RunRow| run.record.dir.parent().map(Path::to_owned);
    let shared = |above: PathBuf, other: PathBuf| above.ancestors().find(|dir| other.starts_with(dir)).map(Path::to_owned);
    let mut parents = runs.iter().map(parent);
    let first = parents.next().flatten().filter(|_| runs.len() > 1);
    let above = parents.try_fold(first, |above, other| Some(Some(shared(above?, other?)?))).flatten();
    let above = above.filter(|above| !above.as_os_str().is_empty());
    let below = |run: &&RunRow| {
        let dir = above.as_ref().and_then(|above| run.record.dir.strip_prefix(above).ok()).unwrap_or(&run.record.dir);
        dir.display().to_string()
    };
    (above.clone(), runs.iter().map(below).collect())
}

pub(super) fn unknown() -> String {
    "-".to_owned()
}

fn duration(seconds: f64) -> String {
    human(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
