//! Hints for a folder without a model: the models in its subfolders. A run or a checkpoint has its model some levels below.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

/// Depth of the search below a run: `global_step_N/actor/huggingface`.
const DEPTH: usize = 3;
/// Number of models to name.
const MAX_LISTED: usize = 3;
const STEP: &str = "global_step_";

/// Returns `; there is a model in …` for the end of an error message, latest checkpoints first; empty if no subfolder has a
/// model.
pub fn models_below(folder: &Path) -> String {
    let (mut found, mut level) = (Vec::new(), vec![folder.to_owned()]);
    for _ in 0..DEPTH {
        level = level.iter().flat_map(|folder| parts(folder)).collect();
        found.extend(
            level.iter().filter(|folder| folder.join("config.json").is_file()).map(|folder| folder.display().to_string()),
        );
    }
    match found.len() {
        0 => String::new(),
        count => {
            format!(
                "; there is a model in {}{}",
                found[..count.min(MAX_LISTED)].join(", "),
                if count > MAX_LISTED { ", …" } else { "" }
            )
        }
    }
}

/// Lists the subfolders that are a checkpoint, a part of a checkpoint, or a model.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let rank = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let step = name.strip_prefix(STEP).and_then(|step| step.parse::<u64>().ok());
        let known = step.is_some() || ["actor", "critic", "huggingface"].contains(&name);
        (known && path.is_dir()).then(|| (Reverse(step), name.to_owned()))
    };
    let mut parts: Vec<_> = entries.filter_map(|path| Some((rank(&path)?, path))).collect();
    parts.sort();
    parts.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_a_checkpoint_and_a_part_lead_to_the_model() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path();
        for model in ["global_step_9/actor", "global_step_9/critic", "global_step_10/actor", "global_step_2/actor", "other"] {
            let folder = run.join(model).join("huggingface");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("config.json"), "{}").unwrap();
        }
        let message = |path: &str| models_below(&run.join(path)).replace(&run.display().to_string(), "R");
        let actor = |step: u32| format!("R/global_step_{step}/actor/huggingface");
        assert_eq!(message("."), message("").replace("R/", "R/./"));
        assert_eq!(
            message(""),
            format!("; there is a model in {}, {}, R/global_step_9/critic/huggingface, …", actor(10), actor(9))
        );
        assert_eq!(message("global_step_10"), format!("; there is a model in {}", actor(10)));
        assert_eq!(message("global_step_10/actor"), format!("; there is a model in {}", actor(10)));
        assert_eq!([message("global_step_10/actor/huggingface"), message("none")], ["", ""]);
    }
}
