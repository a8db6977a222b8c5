//! run.json: the facts and the state of a run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_util::excerpt::beginning_of;
use burnish_util::foreign;
use burnish_util::fs::read_json;
use burnish_util::no_follow;
use burnish_util::platform::host_name;
use burnish_util::secret::hide;
use burnish_util::time::unix_time;

/// Name of the file in the run's folder.
pub const INFO: &str = "run.json";

/// Number of characters of an error that a list of runs shows.
const LONGEST_ERROR: usize = 500;

/// Facts about a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Id of the run: eight digits and lower-case letters. A resumed run keeps it.
    pub id: String,
    pub project: String,
    pub experiment: String,
    /// Kind of run: `ppo` or `sft`.
    pub kind: String,
    /// Version of burnish.
    pub version: String,
    /// Command line of the last process.
    pub command: Vec<String>,
    /// Working folder of the command.
    #[serde(with = "burnish_util::path_text")]
    pub cwd: PathBuf,
    /// Time when the first process began, in seconds since 1970.
    #[serde(with = "burnish_util::json_number")]
    pub started: f64,
    /// Time when the last process began, in seconds since 1970. Records of old versions lack it and `worked_before`.
    #[serde(default, with = "burnish_util::json_number")]
    pub process_started: Option<f64>,
    /// Seconds that earlier processes worked.
    #[serde(default, with = "burnish_util::json_number")]
    pub worked_before: f64,
    /// Time when the last process ended, in seconds since 1970.
    #[serde(default, with = "burnish_util::json_number")]
    pub ended: Option<f64>,
    /// Steps after which later processes resumed.
    pub resumed: Vec<u64>,
    pub pid: u32,
    pub host: String,
    /// Number of steps done when this was written. While the run is active, the metrics file is more up to date.
    pub step: u64,
    pub total_steps: u64,
    pub device: String,
    /// Instructions of the CPU's operations, such as `AVX2`: other ones round differently. Empty in records of old versions.
    #[serde(default)]
    pub instructions: String,
    /// Number of slices whose gradients the last process summed. Records of old versions lack it.
    #[serde(default)]
    pub gradient_slices: Option<usize>,
    /// The model and its size.
    pub model: String,
    /// Metrics file, relative to `cwd`.
    #[serde(with = "burnish_util::path_text")]
    pub metrics: PathBuf,
    pub state: RunState,
    /// Step after which validation measures something else than before; earlier values are not comparable.
    #[serde(default)]
    pub validated_after: Option<u64>,
    /// Set if the scores taught the policy nothing at the end of the run: the finding of the doctor's check.
    #[serde(default)]
    pub no_signal: Option<String>,
    /// Alarms so far, in the order of their steps.
    #[serde(default)]
    pub alarms: Vec<RecordedAlarm>,
    /// Error that the run failed with.
    pub error: Option<String>,
    /// Phase in which the run failed.
    pub phase: Option<String>,
    /// Best validation so far.
    pub best: Option<BestSoFar>,
    /// Every setting, with the place that set it.
    pub config: Vec<RecordedSetting>,
}

/// Readable parts of a record.
#[derive(Clone, Debug, Default)]
pub struct ReadableRecord {
    /// Facts that can be read.
    pub info: Option<RunInfo>,
    /// State from the record, if it can be read.
    pub state: Option<RunState>,
    /// Parts that cannot be read, and the reason.
    pub problem: Option<String>,
}

/// State of a run. A killed run still has the state running, but no process holds the lock of its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    Running,
    Finished,
    Interrupted,
    Failed,
}

impl RunState {
    /// Returns the name of the state in run.json.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// Best value of a validation metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestSoFar {
    pub metric: String,
    #[serde(with = "burnish_util::json_number")]
    pub value: f64,
    pub step: u64,
}

/// A check of the doctor that found a fault while the run trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedAlarm {
    /// Name of the check.
    pub name: String,
    pub step: u64,
    /// The number that decided, if there is one; [`Self::sentence`] says what it means.
    #[serde(default, with = "burnish_util::json_number")]
    pub number: Option<f64>,
    pub sentence: String,
    pub remedy: String,
}

/// One setting of the resolved configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedSetting {
    /// Dotted key of the setting.
    pub key: String,
    pub value: Value,
    /// Place that set it, such as `recipes/x.yaml:12`.
    pub from: String,
}

impl RunInfo {
    /// Creates the record of a run that begins now, without facts about the model it trains.
    pub fn new(kind: &str, project: &str, experiment: &str) -> Self {
        let now = unix_time();
        Self {
            id: new_id(),
            project: project.to_owned(),
            experiment: experiment.to_owned(),
            kind: kind.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: std::env::args_os().map(|word| hide(&word.to_string_lossy()).into_owned()).collect(),
            cwd: std::env::current_dir().unwrap_or_default(),
            started: now,
            process_started: Some(now),
            worked_before: 0.0,
            ended: None,
            validated_after: None,
            no_signal: None,
            alarms: Vec::new(),
            resumed: Vec::new(),
            pid: std::process::id(),
            host: host_name(),
            step: 0,
            total_steps: 0,
            device: String::new(),
            instructions: String::new(),
            gradient_slices: None,
            model: String::new(),
            metrics: PathBuf::new(),
            state: RunState::Running,
            error: None,
            phase: None,
            best: None,
            config: Vec::new(),
        }
    }

    /// Creates a record without any facts.
    pub(super) fn nothing() -> Self {
        let [id, version, host] = [const { String::new() }; 3];
        let (command, cwd) = (Vec::new(), PathBuf::new());
        Self { id, version, host, command, cwd, pid: 0, started: 0.0, process_started: None, ..Self::new("", "", "") }
    }

    /// Adds every setting: its key, its value, and the place that set it.
    pub fn with_settings(self, settings: Vec<(String, Value, String)>) -> Self {
        let setting = |(key, value, from)| RecordedSetting { key, value: readable(value), from };
        Self { config: settings.into_iter().map(setting).collect(), ..self }
    }

    /// Reads the record of the run in this folder.
    ///
    /// # Errors
    /// If the record is missing or damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        read_json(&dir.join(INFO))
    }

    /// Replaces the record of the run in this folder. Secrets are hidden, in the name of the run too.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        no_follow::write(&dir.join(INFO), &serde_json::to_vec_pretty(&hidden(serde_json::to_value(self)?))?)
    }

    /// Reads as much of the record in this folder as possible, even if the file is damaged.
    pub fn read_damaged(dir: &Path) -> ReadableRecord {
        let error = match Self::read(dir) {
            Ok(info) => return ReadableRecord { state: Some(info.state), info: Some(info), problem: None },
            Err(_) if !dir.join(INFO).exists() => return ReadableRecord::default(),
            Err(error) => error,
        };
        let (info, lost) = foreign::read(&dir.join(INFO), foreign::SETTINGS).ok().and_then(|text| Self::salvage(&text)).unzip();
        let lost = lost.unwrap_or_default();
        let left_out = if info.is_some() { lost.join(", ") } else { "all of it".to_owned() };
        let state = info.as_ref().filter(|_| !lost.contains(&"state".to_owned())).map(|info| info.state);
        ReadableRecord {
            info,
            state,
            problem: Some(format!("{}; left out: {left_out}", beginning_of(&format!("{error:#}"), LONGEST_ERROR))),
        }
    }

    /// Returns the readable parts of a damaged file, and the names of the other parts, which stay empty.
    fn salvage(text: &[u8]) -> Option<(Self, Vec<String>)> {
        let found: Map<String, Value> = serde_json::from_slice(text).ok()?;
        let Ok(Value::Object(mut whole)) = serde_json::to_value(Self::nothing()) else { return None };
        let mut lost = Vec::new();
        for key in whole.keys().cloned().collect::<Vec<_>>() {
            let mut tried = whole.clone();
            // Records of old versions may lack some keys.
            match found.get(&key) {
                Some(value) => tried.insert(key.clone(), value.clone()),
                None => tried.shift_remove(&key),
            };
            match serde_json::from_value::<Self>(Value::Object(tried.clone())) {
                Ok(_) => whole = tried,
                Err(_) => lost.push(key),
            }
        }
        Some((serde_json::from_value(Value::Object(whole)).ok()?, lost))
    }

    /// Returns the seconds that processes have worked until a time, without the pauses between them.
    pub fn worked(&self, until: f64) -> f64 {
        let began = self.process_started.unwrap_or(self.started);
        // A damaged record may lack the start time.
        let now = if began > 0.0 { (until - began).max(0.0) } else { 0.0 };
        self.worked_before + now
    }

    /// Takes over the still valid parts of the record of a run that is resumed after `step` and was last active at `last_seen`.
    pub(super) fn resume_from(&mut self, before: Self, step: u64, last_seen: Option<f64>) {
        self.worked_before = before.ended.or(last_seen).map_or(before.worked_before, |until| before.worked(until));
        // Values that a damaged record has lost keep their initial values.
        if !before.id.is_empty() {
            self.id = before.id;
        }
        if before.started > 0.0 {
            self.started = before.started;
        }
        self.resumed = [before.resumed, vec![step]].concat();
        self.validated_after = self.validated_after.or(before.validated_after).filter(|after| *after <= step);
        self.alarms = before.alarms.into_iter().filter(|alarm| alarm.step <= step).collect();
        self.best = before.best.filter(|best| best.step <= step && !best.value.is_nan());
    }
}

/// Replaces values that are nested too deeply for JSON to be read back by their text.
fn readable(value: Value) -> Value {
    const DEEPEST: usize = 100;
    fn height(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(height).max().unwrap_or(0),
            Value::Object(fields) => 1 + fields.values().map(height).max().unwrap_or(0),
            _ => 0,
        }
    }
    if height(&value) > DEEPEST { value.to_string().into() } else { value }
}

/// Returns a unique run id, made from the time in nanoseconds and the process id.
fn new_id() -> String {
    let mut number = ((unix_time() * 1e9) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(std::process::id());
    let digit = |_| {
        let digit = (number % 36) as u32;
        number /= 36;
        char::from_digit(digit, 36).unwrap_or('0')
    };
    (0..8).map(digit).collect()
}

/// Returns a value with the secrets of its texts hidden.
fn hidden(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(hide(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(hidden).collect()),
        Value::Object(entries) => Value::Object(entries.into_iter().map(|(name, value)| (name, hidden(value))).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_of_any_depth_are_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let deep = (0..200).fold(json!(1), |inside, _| json!([inside]));
        let settings = vec![("deep".to_owned(), deep, String::new()), ("flat".to_owned(), json!([[1]]), String::new())];
        RunInfo::new("ppo", "p", "e").with_settings(settings).write(dir.path()).unwrap();
        let read = RunInfo::read(dir.path()).unwrap();
        assert!(
            read.config[0].value.as_str().is_some_and(|text| text.starts_with("[[[")) && read.config[1].value == json!([[1]])
        );
    }
}
