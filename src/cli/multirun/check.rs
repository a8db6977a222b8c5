//! Settings that a sweep cannot have.

use std::collections::HashSet;

use super::super::error::CliError;
use crate::job::run_folder::DIR;
use burnish_config::{ConfigError, Origin, Problem, Tree, Value};

/// The setting of a job's name.
pub(super) const EXPERIMENT: &str = "trainer.experiment_name";

/// Settings that a sweep decides, and the reason.
const DECIDED: &[(&str, &str)] = &[
    (DIR, "each job has its own folder in that of the sweep, which hydra.sweep.dir=FOLDER names"),
    (EXPERIMENT, "each job is named by its swept values"),
    ("trainer.resume_mode", "each job resumes by itself"),
    ("trainer.resume_from_path", "each job resumes by itself"),
];
/// Folders that jobs must not share.
const OWN: &[&str] = &["trainer.rollout_data_dir", "trainer.validation_data_dir"];
/// Variables of the environment that jobs would share, and their meaning.
const SHARED_BY_ENVIRONMENT: &[(&str, &str)] =
    &[("VERL_FILE_LOGGER_PATH", "metrics file"), ("TENSORBOARD_DIR", "folder of TensorBoard"), ("WANDB_RUN_ID", "run of W&B")];

/// Refuses to sweep what the sweep decides itself.
pub(super) fn check_keys(keys: &[String]) -> Result<(), CliError> {
    match DECIDED.iter().find(|(decided, _)| keys.iter().any(|key| key == decided)) {
        Some((key, why)) => Err(wrong(key, &format!("`{key}` cannot be swept: {why}"), "")),
        None => Ok(()),
    }
}

/// Refuses settings with which jobs would not resume, would keep no record, or would write into the folder of another job.
pub(super) fn check_shared(trees: &[&Tree]) -> Result<(), CliError> {
    if trees.iter().any(|tree| tree.value("trainer.val_only") == Some(&Value::Bool(true))) {
        let message = "`trainer.val_only=true` keeps no record, so that a sweep has nothing to compare";
        return Err(wrong(
            "trainer.val_only",
            message,
            "use `trainer generate` and `trainer eval` for models that are not trained",
        ));
    }
    let mode = "trainer.resume_mode";
    if let Some(tree) = trees.iter().find(|tree| text(tree, mode).is_some_and(|mode| mode != "auto")) {
        let given = tree.origin(mode).map_or(String::new(), |origin: &Origin| format!(" ({origin})"));
        let message = format!("`{mode}` must be auto in a sweep, which resumes its jobs itself{given}");
        return Err(wrong(mode, &message, "leave it out, or write trainer.resume_mode=auto"));
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if let Some((name, what)) = SHARED_BY_ENVIRONMENT.iter().find(|(name, _)| is_set(name)) {
        return Err(wrong("", &format!("{name} names one {what} for all jobs"), "unset it: each job has its own"));
    }
    for key in OWN {
        let folders: Vec<&str> = trees.iter().filter_map(|tree| text(tree, key)).collect();
        if folders.iter().collect::<HashSet<_>>().len() < folders.len() {
            let help = format!("write {key}='${{{DIR}}}/{}'", key.rsplit('.').next().unwrap_or(key));
            return Err(wrong(key, &format!("all jobs would write into the same folder `{key}`"), &help));
        }
    }
    Ok(())
}

/// Returns the text of a setting.
pub(super) fn text<'a>(tree: &'a Tree, key: &str) -> Option<&'a str> {
    match tree.value(key) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Returns the error of a setting.
pub(super) fn wrong(key: &str, message: &str, help: &str) -> CliError {
    let problem = Problem::new(key, message);
    ConfigError { problems: vec![if help.is_empty() { problem } else { problem.help(help) }] }.into()
}
