//! Every YAML file of the repository loads, and every name in a registry is accepted.

use std::path::{Path, PathBuf};

use crate::common::{succeed, trainer};

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|e| e == "yaml") {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_recipe_loads_and_resolves_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let recipes = yaml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes"));
    assert!(!recipes.is_empty());
    for recipe in recipes {
        let text = std::fs::read_to_string(&recipe).unwrap();
        assert!(text.starts_with('#'), "{}: a recipe begins with a comment: goal, command, expected result", recipe.display());
        let show = |file: &Path| {
            let mut command = trainer(&["config", "show", "--config"]);
            command.arg(file);
            String::from_utf8(succeed(command).stdout).unwrap()
        };
        let resolved = show(&recipe);
        let again = folder.path().join("resolved.yaml");
        std::fs::write(&again, &resolved).unwrap();
        assert_eq!(show(&again), resolved, "{}: its resolved form loads as something else", recipe.display());
    }
}
