//! The recipes of the repository, built into the program.

use super::super::error::CliError;
use super::starters::STARTERS;
use burnish_config::embedded::{EXAMPLES, RECIPES};
use burnish_util::suggest::did_you_mean;

/// A recipe: its path inside `recipes/`, without `.yaml`, and its text.
type ShippedRecipe = (&'static str, &'static str);

/// Returns the recipes, sorted by name.
pub(super) fn shipped() -> Vec<ShippedRecipe> {
    let mut recipes = [RECIPES, EXAMPLES].concat();
    recipes.sort_unstable();
    recipes
}

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
pub(super) fn find(name: &str) -> Result<ShippedRecipe, CliError> {
    let bare = name.trim_start_matches("recipes/").trim_end_matches(".yaml");
    let recipes = shipped();
    recipes.iter().find(|(known, _)| *known == bare).copied().ok_or_else(|| {
        let known = recipes.iter().map(|(known, _)| *known).chain(STARTERS.iter().map(|starter| starter.name));
        let suggestion = did_you_mean(bare, known);
        CliError::Setup(format!("there is no recipe `{name}`.{suggestion} `trainer recipes` lists them"))
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
        let named: Vec<_> = shipped().iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(named, found, "crates/config/src/embedded.rs names the files of recipes/");
        for (name, text) in shipped() {
            let file = std::fs::read_to_string(root.join(name).with_extension("yaml")).unwrap();
            assert!(text == file, "{name}");
            let of = |line| head(text, line).unwrap_or_else(|| panic!("recipes/{name}.yaml has no line `{line}:`"));
            assert!(!of("Goal").is_empty() && of("Command").contains("trainer "), "{name}");
        }
    }
}
