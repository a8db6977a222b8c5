//! From a path to the copy of a built-in file or folder.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use super::copy;
use super::folders::{BuiltInFolder, FOLDERS};
use burnish_config::schema::{Location, LocationKind, Schema};

/// The copies that this process has written or compared.
static COPIES: Mutex<BTreeMap<&'static str, PathBuf>> = Mutex::new(BTreeMap::new());

/// Returns the copy of a built-in file or folder; `None` if the path exists or is not built in.
///
/// # Errors
/// If the copy cannot be written.
pub(crate) fn find(path: &Path) -> Result<Option<PathBuf>> {
    let Some((folder, path)) = built_in_folder(path).filter(|_| !path.exists()) else { return Ok(None) };
    let mut copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(root) = copies.get(folder.name) {
        return Ok(Some(root.join(path)));
    }
    let copy = copy::find_or_write(folder)?;
    tracing::info!("{}", copy.describe(folder.name));
    let found = copy.root.join(path);
    copies.insert(folder.name, copy.root);
    Ok(Some(found))
}

/// Returns true if a path is the path of a built-in file or folder.
pub(crate) fn is_built_in(path: &Path) -> bool {
    built_in_folder(path).is_some()
}

/// Returns the path, or the copy of a built-in file or folder.
///
/// # Errors
/// If the copy cannot be written.
pub(crate) fn or_built_in(path: &Path) -> Result<PathBuf> {
    Ok(find(path)?.unwrap_or_else(|| path.to_owned()))
}

/// Replaces the files of code and tools that settings name, if they are built in.
///
/// # Errors
/// If a copy cannot be written.
pub(crate) fn replace_files<T: Schema>(config: &mut T) -> Result<()> {
    for place in config.locations().into_iter().filter(|place| place.kind == LocationKind::File) {
        if let Some(path) = find(place.location.as_path())? {
            *place.location = Location::resolved(&place.location.to_string(), vec![path], false);
        }
    }
    Ok(())
}

/// Returns the built-in folder of a relative path, and the path without `.` and repeated slashes.
fn built_in_folder(path: &Path) -> Option<(&'static BuiltInFolder, PathBuf)> {
    let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let folder = FOLDERS.iter().find(|folder| path.starts_with(folder.name))?;
    let below = path.strip_prefix(folder.name).ok()?;
    folder.files.iter().any(|(name, _)| Path::new(name).starts_with(below)).then_some((folder, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_config::embedded::{EXAMPLES, RECIPES};
    use burnish_util::fs::files_under;

    #[test]
    fn the_table_has_every_file_of_its_folders() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in FOLDERS {
            let is_recipe = |file: &Path| folder.name.starts_with("recipes") && file.extension().is_some_and(|end| end == "yaml");
            let mut found = files_under(&root.join(folder.name)).unwrap();
            found.retain(|file| !is_recipe(file) && !file.starts_with("__pycache__"));
            let named: Vec<&Path> = folder.files.iter().map(|(name, _)| Path::new(name)).collect();
            assert_eq!(named, found, "{}", folder.name);
            for (name, bytes) in folder.files {
                assert!(std::fs::read(root.join(folder.name).join(name)).unwrap() == *bytes, "{}/{name}", folder.name);
            }
        }
    }

    /// Every path in a recipe is built in, or a command in the recipe's head writes it.
    #[test]
    fn recipes_name_only_built_in_files() {
        for (recipe, text) in RECIPES.iter().chain(EXAMPLES) {
            let (head, body): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
            for value in body.iter().filter_map(|line| line.trim().split_once(": ")).map(|(_, value)| value) {
                let is_path = ["data/", "recipes/"].iter().any(|begin| value.starts_with(begin));
                let folder = Path::new(value).parent().unwrap_or(Path::new(value)).display().to_string();
                let is_written = head.iter().any(|line| line.contains(&format!("--output {folder}")));
                assert!(!is_path || is_written || is_built_in(Path::new(value)), "recipes/{recipe}.yaml: {value}");
            }
        }
    }

    #[test]
    fn a_path_is_known_in_any_spelling() {
        let found = |path: &str| built_in_folder(Path::new(path)).map(|(_, path)| path.display().to_string());
        for path in ["data/arithmetic/model", "./data/arithmetic/model/", "data//arithmetic/./model"] {
            assert_eq!(found(path).as_deref(), Some("data/arithmetic/model"), "{path}");
        }
        assert_eq!(found("recipes/guess/guess.py").as_deref(), Some("recipes/guess/guess.py"));
        for path in ["data", "", "data/arithmetic/mode", "data/arithmetic2", "/data/arithmetic/model", "x/data/arithmetic/model"]
        {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
