//! The folder of a new run: another run's work there is neither replaced nor deleted.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::earlier_settings::Earlier;
use burnish_checkpoint::Checkpoints;
use burnish_config::schema::{Location, TrainerResumeMode};
use burnish_config::{Tree, Value};
use burnish_run::EarlierRun;

/// The setting of a run's folder.
pub(crate) const DIR: &str = "trainer.default_local_dir";
/// The setting that decides whether a run resumes.
const MODE: &str = "trainer.resume_mode";

/// Returns the folder that a run uses instead of the set one, if the set folder has the work of another run: the first of NAME-2,
/// NAME-3, … that is free or has this run. With `trainer.resume_mode=disable`, any existing work belongs to another run.
pub(crate) fn taken_instead(tree: &Tree) -> Option<PathBuf> {
    let text = |key: &str| match tree.value(key) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let mode = text(MODE).filter(|_| tree.value("trainer.val_only") != Some(&Value::Bool(true)))?;
    let dir = Location::new(text(DIR)?);
    let (why, folder) = match mode {
        "disable" => (format!("{MODE}=disable"), next_free(dir.as_path())),
        "auto" => {
            let folder = folder_of(dir.as_path(), tree);
            (Earlier::read(dir.as_path())?.other_than(tree, || work(&folder).is_some())?, folder)
        }
        _ => return None,
    };
    let work = work(dir.as_path())?;
    let last = Checkpoints::read_only(dir.as_path()).list().ok().and_then(|saved| saved.into_iter().map(|one| one.dir).next());
    let to_continue = last.filter(|_| mode == "auto").map_or(String::new(), |last| {
        format!("; to continue it instead: {MODE}=resume_path trainer.resume_from_path={}", last.display())
    });
    tracing::warn!("{dir} has {work}, which stays unchanged: this run is in {} ({why}){to_continue}", folder.display());
    Some(folder)
}

/// Returns the first numbered folder that is free or has the run of these settings.
fn folder_of(dir: &Path, tree: &Tree) -> PathBuf {
    let is_own = |folder: &PathBuf| match Earlier::read(folder) {
        Some(earlier) => earlier.differences(tree).is_empty() && !earlier.is_lost(),
        None => work(folder).is_none(),
    };
    numbered(dir).find(is_own).unwrap_or_else(|| dir.to_owned())
}

/// Refuses a folder whose work a run would replace, unless the run continues it. `from`: the checkpoint that the run continues
/// from.
///
/// # Errors
/// If the folder has a finished run or checkpoints, with the ways to start elsewhere.
pub fn check(dir: &Path, mode: TrainerResumeMode, from: Option<&Path>) -> Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    if from.is_some_and(|from| from.parent().and_then(real) == real(dir)) {
        return Ok(());
    }
    // The same command starts again a run that has neither finished nor saved anything.
    let is_only_begun = !has_checkpoints(dir) && EarlierRun::read(dir).is_some_and(|run| !run.is_finished());
    let Some(work) = work(dir).filter(|_| !is_only_begun) else { return Ok(()) };
    let free = next_free(dir);
    let other = match (mode, from) {
        (TrainerResumeMode::ResumePath, Some(_)) => format!("continue from its own checkpoint with {MODE}=auto"),
        _ => format!("start a new run with {MODE}=disable, which chooses such a folder itself"),
    };
    bail!(
        "{} has {work}, whose record a new run would replace: name another folder, such as {DIR}={}, or {other}",
        dir.display(),
        free.display()
    )
}

/// Describes the work of a run in a folder in a few words; `None` if the folder has no work to lose.
fn work(dir: &Path) -> Option<String> {
    let run = EarlierRun::read(dir);
    let described = run.as_ref().map(EarlierRun::describe);
    match has_checkpoints(dir) {
        true => Some(described.map_or_else(|| "checkpoints".to_owned(), |run| format!("{run} and its checkpoints"))),
        false => described.filter(|_| run.is_some_and(|run| run.has_results())),
    }
}

fn has_checkpoints(dir: &Path) -> bool {
    Checkpoints::read_only(dir).list().is_ok_and(|saved| !saved.is_empty())
}

fn next_free(dir: &Path) -> PathBuf {
    numbered(dir).find(|folder| work(folder).is_none()).unwrap_or_else(|| dir.to_owned())
}

/// Returns NAME-2, NAME-3, …
fn numbered(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let name = dir.file_name().unwrap_or_default().to_owned();
    let dir = dir.to_owned();
    (2u32..).map(move |count| {
        let mut name = name.clone();
        name.push(format!("-{count}"));
        dir.with_file_name(name)
    })
}
