//! The built-in files of a program, which the program passes to this crate.

use super::provenance::YamlSource;
use std::sync::Arc;

/// Prefix of a name that selects the built-in file, never a file on disk.
pub(crate) const BUILT_IN: &str = "built-in:";

/// Names of the folders of the built-in files and recipes in messages.
const BUILT_IN_FOLDERS: [&str; 2] = ["built-in config/", "built-in recipes/"];

/// The folder of recipes, which may begin the name of a built-in one.
const RECIPES: &str = "recipes/";

/// A path without `.yaml`, and the text of the file.
pub(crate) type BuiltInFile = (&'static str, &'static str);

/// The built-in files of a program, and the folders that it searches by default.
pub struct Library {
    /// The built-in files.
    pub files: &'static [BuiltInFile],
    /// The built-in recipes: primary files that include built-in files. Their settings count as the program's own.
    pub recipes: &'static [BuiltInFile],
    /// Further built-in recipes. Their settings count as the user's.
    pub examples: &'static [BuiltInFile],
    /// Folders in the current directory in which `--config` is also looked up.
    pub usual_folders: &'static [&'static str],
    /// Built-in files that replace the files of another program.
    pub stand_in: StandIn,
    /// Closed sets of files. Each set is composed without any other files.
    pub packs: Vec<Pack>,
}

/// Built-in files that replace the folder of another program if the folder is not on disk.
pub struct StandIn {
    /// The end of the path of the folder that is replaced.
    pub folder: &'static str,
    /// The folder of all built-in files of the other program, with its `/`. These files are primary files, not options of a
    /// group.
    pub root: &'static str,
    /// The folder of the built-in files that replace the other program's folder, with its `/`.
    pub files: &'static str,
    /// The name of such a file in messages.
    pub pattern: &'static str,
}

/// A closed set of files.
pub struct Pack {
    /// The prefix of the names of the pack's files, in requests and in messages.
    pub name: String,
    /// The files of the pack.
    pub files: Vec<BuiltInFile>,
}

impl Library {
    /// Returns the built-in file with this name.
    pub fn file(&self, name: &str) -> Option<Arc<YamlSource>> {
        source(BUILT_IN_FOLDERS[0], self.files, name)
    }

    /// Returns the built-in recipe with this name, with or without the folder of recipes, and its name without the folder.
    pub fn recipe(&self, name: &str) -> Option<(&'static str, Arc<YamlSource>)> {
        let name = name.strip_prefix(RECIPES).unwrap_or(name);
        let known = self.recipe_names().find(|known| *known == name)?;
        let source = [self.recipes, self.examples].into_iter().find_map(|files| source(BUILT_IN_FOLDERS[1], files, known))?;
        Some((known, source))
    }

    /// Returns the built-in file that replaces a file of the other program.
    pub fn stand_in(&self, path: &str) -> Option<Arc<YamlSource>> {
        self.file(&format!("{}{path}", self.stand_in.files))
    }

    /// True if there is a built-in folder with this name.
    pub(crate) fn has_folder(&self, name: &str) -> bool {
        has_folder(self.files, name)
    }

    /// Returns the names of the built-in files that are primary files, not options of a group.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.files.iter().map(|(name, _)| *name).filter(|name| !name.contains('/') || name.starts_with(self.stand_in.root))
    }

    /// Returns the names of the built-in files below a folder, relative to it.
    pub(crate) fn names_below(&self, prefix: &str) -> impl Iterator<Item = &'static str> {
        self.files.iter().filter_map(move |(name, _)| name.strip_prefix(prefix))
    }

    /// Returns the names of all recipes.
    pub(crate) fn recipe_names(&self) -> impl Iterator<Item = &'static str> {
        self.recipes.iter().chain(self.examples).map(|(name, _)| *name)
    }

    /// True if the source is a built-in file whose settings are the program's own.
    pub fn is_built_in(&self, source: &YamlSource) -> bool {
        BUILT_IN_FOLDERS.iter().any(|folder| source.name.starts_with(folder)) && self.is_copy_of_built_in(source)
    }

    /// True if a file on disk is an exact copy of a built-in one, as in a checkout of the project.
    pub fn is_copy_of_built_in(&self, source: &YamlSource) -> bool {
        self.files.iter().chain(self.recipes).any(|(_, text)| *text == source.text)
    }
}

impl Pack {
    /// Returns the file with this path.
    pub fn file(&self, path: &str) -> Option<Arc<YamlSource>> {
        source(&self.name, &self.files, path)
    }

    /// True if the pack has a folder with this name.
    pub(crate) fn has_folder(&self, name: &str) -> bool {
        has_folder(&self.files, name)
    }

    /// Returns the names of the files below a folder, relative to it.
    pub(crate) fn names_below(&self, prefix: &str) -> impl Iterator<Item = &'static str> {
        self.files.iter().filter_map(move |(name, _)| name.strip_prefix(prefix))
    }
}

fn source(folder: &str, files: &[BuiltInFile], name: &str) -> Option<Arc<YamlSource>> {
    let (name, text) = files.iter().find(|(known, _)| *known == name)?;
    Some(Arc::new(YamlSource { name: format!("{folder}{name}.yaml"), text: text.to_string() }))
}

fn has_folder(files: &[BuiltInFile], name: &str) -> bool {
    files.iter().any(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}
