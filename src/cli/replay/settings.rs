//! The settings of a replay: those of the run, in a scratch folder, with the changes that the user asks for.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value};

use super::super::args::ConfigArgs;
use super::recorded::{Beginning, RecordedSteps};
use crate::job::run_folder::DIR;
use burnish_util::foreign;
use burnish_util::platform::temporary_folder;

/// Size limit of a file of results of tools, which is copied: a file of another user may claim more than the disk has.
const LARGEST_RECORD: u64 = 4 << 30;

const SLICES: &str = "trainer.gradient_slices";

/// A folder that is removed at the end.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Self> {
        let folder = temporary_folder()?.join(format!("replay-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Folder of the replayed run.
    pub(super) fn run(&self) -> PathBuf {
        self.0.join("run")
    }

    /// Copies what the run remembers of its tools since its last checkpoint.
    pub(super) fn copy_results_of_tools(&self, dir: &Path) -> Result<()> {
        fs::create_dir_all(self.run())?;
        for entry in fs::read_dir(dir)?.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with("conversations-") && entry.path().is_file() {
                let bytes = entry.path().metadata()?.len();
                ensure!(
                    bytes <= LARGEST_RECORD,
                    "{} has {bytes} bytes; a replay copies results of tools of at most {LARGEST_RECORD} bytes",
                    entry.path().display()
                );
                fs::copy(entry.path(), self.run().join(name))?;
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the configuration of a replay of `step`, which begins `from` a state. `changes`: overrides of the user.
///
/// # Errors
/// If the settings of the run cannot be read or copied.
pub(super) fn of_replay(
    recorded: &RecordedSteps,
    step: u64,
    from: &Beginning,
    scratch: &Scratch,
    changes: &[String],
) -> Result<ConfigArgs> {
    let text = match recorded.settings_of(step) {
        Some(file) => foreign::read_text(&file, foreign::SETTINGS)?,
        None => nested(recorded).to_string(),
    };
    let file = scratch.0.join("settings.yaml");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let quoted = |key: &str, path: &Path| format!("{key}='{}'", path.display().to_string().replace('\'', "\\'"));
    let mut overrides = vec![quoted(DIR, &scratch.run())];
    match &from.checkpoint {
        Some(checkpoint) => {
            overrides.push("trainer.resume_mode=resume_path".to_owned());
            overrides.push(quoted("trainer.resume_from_path", checkpoint));
        }
        None => overrides.push("trainer.resume_mode=disable".to_owned()),
    }
    let has = |key: &str| recorded.info.config.iter().any(|setting| setting.key == key);
    let files = ["trainer.rollout_data_dir", "trainer.validation_data_dir"].into_iter().filter(|key| has(key));
    overrides.extend(files.map(|key| format!("{key}=null")));
    overrides.extend(["trainer.val_only"].into_iter().filter(|key| has(key)).map(|key| format!("{key}=false")));
    overrides.extend(slices(recorded, from).map(|slices| format!("{SLICES}={slices}")));
    overrides.extend(changes.iter().cloned());
    Ok(ConfigArgs { config: Some(file.display().to_string()), overrides, ..ConfigArgs::default() })
}

/// Returns the number of slices whose gradients the run summed, one for each of its processes; `None` if a setting or a checkpoint
/// has it.
pub(super) fn slices(recorded: &RecordedSteps, from: &Beginning) -> Option<usize> {
    let slices = recorded.info.gradient_slices.filter(|slices| from.checkpoint.is_none() && *slices > 1);
    slices.filter(|_| recorded.setting(SLICES).is_none())
}

/// Returns the settings of run.json as one mapping. JSON is YAML too.
fn nested(recorded: &RecordedSteps) -> Value {
    let mut root = Map::new();
    recorded.info.config.iter().for_each(|setting| put(&mut root, &setting.key, &setting.value));
    Value::Object(root)
}

/// Puts a value at its dotted key.
fn put(level: &mut Map<String, Value>, key: &str, value: &Value) {
    match key.split_once('.') {
        None => _ = level.insert(key.to_owned(), value.clone()),
        Some((first, rest)) => {
            if let Value::Object(below) = level.entry(first).or_insert_with(|| Value::Object(Map::new())) {
                put(below, rest, value);
            }
        }
    }
}
