//! The recipes of the repository, built into the program.

use super::super::error::CliError;
use super::starters::STARTERS;
use burnish_util::suggest::did_you_mean;

/// A recipe: its path inside `recipes/`, without `.yaml`, and its text. A test compares this table with the folder.
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("arithmetic/dapo", include_str!("../../../recipes/arithmetic/dapo.yaml")),
    ("arithmetic/distill", include_str!("../../../recipes/arithmetic/distill.yaml")),
    ("arithmetic/dpo", include_str!("../../../recipes/arithmetic/dpo.yaml")),
    ("arithmetic/first", include_str!("../../../recipes/arithmetic/first.yaml")),
    ("arithmetic/first_distill", include_str!("../../../recipes/arithmetic/first_distill.yaml")),
    ("arithmetic/first_dpo", include_str!("../../../recipes/arithmetic/first_dpo.yaml")),
    ("arithmetic/first_generate", include_str!("../../../recipes/arithmetic/first_generate.yaml")),
    ("arithmetic/first_rm", include_str!("../../../recipes/arithmetic/first_rm.yaml")),
    ("arithmetic/first_sft", include_str!("../../../recipes/arithmetic/first_sft.yaml")),
    ("arithmetic/online_dpo", include_str!("../../../recipes/arithmetic/online_dpo.yaml")),
    ("arithmetic/ppo", include_str!("../../../recipes/arithmetic/ppo.yaml")),
    ("arithmetic/prm", include_str!("../../../recipes/arithmetic/prm.yaml")),
    ("arithmetic/random_reward_model", include_str!("../../../recipes/arithmetic/random_reward_model.yaml")),
    ("arithmetic/reward_model", include_str!("../../../recipes/arithmetic/reward_model.yaml")),
    ("arithmetic/rloo_trl", include_str!("../../../recipes/arithmetic/rloo_trl.yaml")),
    ("arithmetic/rm", include_str!("../../../recipes/arithmetic/rm.yaml")),
    ("arithmetic/sft", include_str!("../../../recipes/arithmetic/sft.yaml")),
    ("calculator/grpo", include_str!("../../../recipes/calculator/grpo.yaml")),
    ("calculator/sft", include_str!("../../../recipes/calculator/sft.yaml")),
    ("gsm8k/grpo", include_str!("../../../recipes/gsm8k/grpo.yaml")),
    ("gsm8k/random_small", include_str!("../../../recipes/gsm8k/random_small.yaml")),
    ("gsm8k/rloo", include_str!("../../../recipes/gsm8k/rloo.yaml")),
    ("guess/grpo", include_str!("../../../recipes/guess/grpo.yaml")),
    ("tldr/generate", include_str!("../../../recipes/tldr/generate.yaml")),
    ("tldr/judge", include_str!("../../../recipes/tldr/judge.yaml")),
    ("tldr/rloo", include_str!("../../../recipes/tldr/rloo.yaml")),
];

/// Returns the value of a line of a recipe's head, such as `Goal`, on one line.
pub(super) fn head(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().take_while(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    let begin = format!("{name}:");
    let first = lines.find_map(|line| line.trim_start().strip_prefix(&begin))?;
    let is_further = |line: &&str| line.starts_with("           ");
    let words: Vec<&str> = std::iter::once(first).chain(lines.take_while(is_further)).flat_map(str::split_whitespace).collect();
    Some(words.join(" "))
}

/// Finds a shipped recipe by its name.
pub(super) fn find(name: &str) -> Result<&'static (&'static str, &'static str), CliError> {
    let bare = name.trim_start_matches("recipes/").trim_end_matches(".yaml");
    SHIPPED.iter().find(|(known, _)| *known == bare).ok_or_else(|| {
        let known = SHIPPED.iter().map(|(known, _)| *known).chain(STARTERS.iter().map(|starter| starter.name));
        let meant = did_you_mean(bare, known);
        CliError::Setup(format!("there is no recipe `{name}`.{meant} `trainer recipes` lists them"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn files(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, root, found);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                found.push(path.strip_prefix(root).unwrap().with_extension("").display().to_string());
            }
        }
    }

    #[test]
    fn every_recipe_is_shipped_with_its_goal_and_command() {
        let (root, mut found) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes"), vec![]);
        files(&root, &root, &mut found);
        found.sort();
        assert_eq!(SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>(), found);
        for (name, text) in SHIPPED {
            let of = |line| head(text, line).unwrap_or_else(|| panic!("recipes/{name}.yaml has no line `{line}:`"));
            assert!(!of("Goal").is_empty() && of("Command").contains("trainer "), "{name}");
        }
    }
}
