//! Search for the folders of runs: all runs under a folder, and the run that a path refers to.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use burnish_checkpoint::step_of;
use burnish_run::{INFO, METRICS};
use burnish_util::suggest::did_you_mean;

/// Depth below a folder to which runs are searched; `FOLDERS` is the largest number of folders searched.
const DEPTH: usize = 6;
const FOLDERS: usize = 20_000;

/// Returns true if this folder is the folder of a run.
pub fn is_run(dir: &Path) -> bool {
    [INFO, METRICS].iter().any(|file| dir.join(file).is_file())
}

/// Finds the run that a path refers to: its folder, one of its checkpoints, or a file in it.
///
/// # Errors
/// If there is no run; the message names runs nearby.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    let above = match path.ancestors().find(|dir| step_of(dir).is_ok()) {
        Some(checkpoint) => checkpoint.parent(),
        None => path.is_file().then(|| path.parent()).flatten(),
    };
    let above = above.map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
    if let Some(dir) = [above, Some(path)].into_iter().flatten().find(|dir| is_run(dir)) {
        return Ok(dir.to_owned());
    }
    let below = find(&[path.to_owned()]);
    if !below.is_empty() {
        let few: Vec<String> = below.iter().take(3).map(|dir| dir.display().to_string()).collect();
        let more = if below.len() > few.len() { ", …" } else { "" };
        bail!("no run in {}, but below it: {}{more}", path.display(), few.join(", "));
    }
    let hint = "`trainer runs ls FOLDER` lists the runs below a folder";
    bail!("no run in {}: it has neither {INFO} nor {METRICS}.{} {hint}", path.display(), similar_name(path))
}

/// Suggests a run with a similar name in the same folder.
fn similar_name(path: &Path) -> String {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let beside = folders(parent.unwrap_or(Path::new(".")))
        .into_iter()
        .filter(|dir| is_run(dir) || !find(std::slice::from_ref(dir)).is_empty());
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let names: Vec<String> = beside.map(|dir| name(&dir)).collect();
    did_you_mean(&name(path), names.iter().map(String::as_str))
}

/// Finds all runs in and below these folders, each once, outside of checkpoints and hidden folders. Links are followed.
pub fn find(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut level: Vec<PathBuf> = roots.to_vec();
    for _ in 0..=DEPTH {
        // Skips a folder that was seen under another name, for example behind a link to a parent folder.
        level.retain(|dir| seen.len() < FOLDERS && dir.canonicalize().is_ok_and(|dir| seen.insert(dir)));
        found.extend(level.iter().filter(|dir| is_run(dir)).cloned());
        level = level.iter().flat_map(|dir| folders(dir)).collect();
    }
    found
}

/// Lists the subfolders that may be or hold runs, sorted.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_hidden = |path: &Path| path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let mut folders: Vec<PathBuf> = entries.filter(|path| !is_hidden(path) && step_of(path).is_err() && path.is_dir()).collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_whatever_part_of_them_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for file in
            ["p/grpo/metrics.jsonl", "p/grpo/global_step_2/actor/run.json", "p/rloo/run.json", "p/.hidden/run.json", "q/x.txt"]
        {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("..", root.join("p/up")).unwrap();
        let runs = [root.join("p/grpo"), root.join("p/rloo")];
        assert_eq!(find(&[root.to_owned(), root.join("p"), root.join("none")]), runs);

        for path in
            ["p/grpo", "p/grpo/metrics.jsonl", "p/grpo/global_step_2", "p/grpo/global_step_2/actor", "p/grpo/global_step_9"]
        {
            assert_eq!(resolve(&root.join(path)).unwrap(), runs[0], "{path}");
        }
        for (path, part) in [
            ("p/gpro", "Did you mean \"grpo\"?"),
            ("p", "below it: "),
            ("q", "`trainer runs ls FOLDER` lists"),
            ("q/x.txt", "no run in "),
        ] {
            let error = resolve(&root.join(path)).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(path), "{error}");
        }
    }
}
