//! The settings of an earlier run in a folder, compared with those of a command. A finished run continues only with more steps;
//! other settings mean another run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use burnish_checkpoint::{Checkpoints, changes_the_run};
use burnish_config::Tree;
use burnish_run::{RunInfo, RunState};

const STEPS: &str = "trainer.total_training_steps";
const EPOCHS: &str = "trainer.total_epochs";
const PATIENCE: &str = "trainer.early_stopping_patience";
/// Unset, this is the date of the first start.
const DATE: &str = "data.chat_template_date";
/// Largest number of differences in a message.
const MAX_NAMED: usize = 3;

/// An earlier run in a folder.
pub(super) struct Earlier {
    info: RunInfo,
    settings: BTreeMap<String, Value>,
    has_checkpoints: bool,
}

impl Earlier {
    /// Reads the record in a folder, if any.
    pub(super) fn read(dir: &Path) -> Option<Self> {
        let info = RunInfo::read(dir).ok()?;
        let settings = info.config.iter().map(|setting| (setting.key.clone(), setting.value.clone())).collect();
        let has_checkpoints = Checkpoints::read_only(dir).newest().is_some();
        Some(Self { info, settings, has_checkpoints })
    }

    /// Returns true if the run has finished and saved nothing, so that it can neither be continued nor found complete.
    pub(super) fn is_lost(&self) -> bool {
        self.info.state == RunState::Finished && !self.has_checkpoints
    }

    /// Returns why a command with these settings is another run than this finished one; `None` if it continues this run. More
    /// steps continue a run, also with changed settings, which the resumed run reports; another algorithm is another run, and so
    /// are settings that `has_own`: a run in a further folder has them.
    pub(super) fn other_than(&self, tree: &Tree, has_own: impl FnOnce() -> bool) -> Option<String> {
        if self.info.state != RunState::Finished {
            return None;
        }
        if self.is_lost() {
            return Some("the finished run saved no checkpoint".to_owned());
        }
        let differences = self.differences(tree);
        let is_other = || differences.iter().any(|line| line.starts_with("algorithm.")) || has_own();
        if differences.is_empty() || self.asks_for_more(tree) && !is_other() {
            return None;
        }
        let more = differences.len().saturating_sub(MAX_NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named: Vec<String> = differences.into_iter().take(MAX_NAMED).collect();
        Some(format!("its settings differ: {}{more}", named.join(", ")))
    }

    /// Returns the differences that change results, as KEY: BEFORE -> NOW.
    pub(super) fn differences(&self, tree: &Tree) -> Vec<String> {
        let now = settings(tree);
        let is_same_version = self.info.version == env!("CARGO_PKG_VERSION");
        let mut differences = vec![];
        for key in self.settings.keys().chain(now.keys().filter(|key| !self.settings.contains_key(*key))) {
            let (before, now) = (self.settings.get(key), now.get(key));
            let is_known = before.is_some() && now.is_some() || is_same_version;
            if !is_known || !changes_the_run(key) || self.is_same(key, before, now) {
                continue;
            }
            let shown = |value: Option<&Value>| value.map_or("(not there)".to_owned(), Value::to_string);
            differences.push(format!("{key}: {} -> {}", shown(before), shown(now)));
        }
        differences
    }

    /// Returns true if two values mean the same. The record has the commit of a name on the Hub, and the checkpoint of a run.
    fn is_same(&self, key: &str, before: Option<&Value>, now: Option<&Value>) -> bool {
        let place = |folder: &Path, text: &str| folder.join(text).canonicalize().ok();
        match (before, now) {
            (before, now) if before == now => true,
            (Some(Value::String(before)), Some(Value::String(now))) => {
                let name = before.strip_prefix("hf://datasets/").unwrap_or(before);
                let rest = name.strip_prefix(now.trim_start_matches("hf://").trim_start_matches("datasets/"));
                let is_fixed = rest.is_some_and(|rest| rest.starts_with('@') || rest.starts_with("/global_step_"));
                let [was, is] = [place(&self.info.cwd, before), place(&PathBuf::new(), now)];
                is_fixed || was.is_some() && was == is
            }
            (Some(Value::Array(before)), Some(now)) if before.len() == 1 => self.is_same(key, before.first(), Some(now)),
            (_, None | Some(Value::Null)) => key == DATE,
            _ => false,
        }
    }

    /// Returns true if the command requests more steps than the run made, or more patience than a run that ended early had.
    fn asks_for_more(&self, tree: &Tree) -> bool {
        let now = settings(tree);
        let number = |settings: &BTreeMap<String, Value>, key: &str| settings.get(key).and_then(Value::as_f64);
        let patience = |settings: &BTreeMap<String, Value>| number(settings, PATIENCE).unwrap_or(f64::INFINITY);
        if self.info.step < self.info.total_steps && patience(&now) > patience(&self.settings) {
            return true;
        }
        match (number(&now, STEPS), number(&self.settings, STEPS)) {
            (Some(steps), _) => steps > self.info.total_steps as f64,
            (None, None) => number(&now, EPOCHS) > number(&self.settings, EPOCHS),
            (None, Some(_)) => false,
        }
    }
}

/// Returns the settings as a record has them.
fn settings(tree: &Tree) -> BTreeMap<String, Value> {
    let recorded = RunInfo::new("", "", "").with_settings(tree.settings());
    recorded.config.into_iter().map(|setting| (setting.key, setting.value)).collect()
}
