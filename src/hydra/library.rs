//! The files that are built into a program, as data that the program passes in.

use super::provenance::Source;
use std::sync::Arc;

/// In front of a name, it stands for the built-in file and no other.
pub const BUILT_IN: &str = "built-in:";

/// How messages call the folder of the built-in files.
const BUILT_IN_FOLDER: &str = "built-in config/";

/// A path without `.yaml`, and the text of the file.
pub type File = (&'static str, &'static str);

/// What a program has beside the files on disk.
pub struct Library {
    /// The built-in files.
    pub files: &'static [File],
    /// Folders of the current directory in which `--config` is also looked for.
    pub usual_folders: &'static [&'static str],
    /// Built-in files that stand in for those of another program.
    pub stand_in: StandIn,
    /// Closed sets of files, each of which is composed without any others.
    pub packs: Vec<Pack>,
}

/// Built-in files that stand in for the folder of another program where it is not on disk.
pub struct StandIn {
    /// The end of the folder's path.
    pub folder: &'static str,
    /// The folder of all its built-in files, `/` included. They stand for themselves, not for an option of a group.
    pub root: &'static str,
    /// The folder of those that stand in for it, `/` included.
    pub files: &'static str,
    /// How messages call such a file.
    pub pattern: &'static str,
}

/// A closed set of files.
pub struct Pack {
    /// What stands in front of the name of one of its files, in requests and in messages.
    pub name: String,
    /// Its files.
    pub files: Vec<File>,
}

impl Library {
    /// The built-in file of this name.
    pub fn file(&self, name: &str) -> Option<Arc<Source>> {
        let (name, text) = self.files.iter().find(|(known, _)| *known == name)?;
        Some(Arc::new(Source { name: format!("{BUILT_IN_FOLDER}{name}.yaml"), text: text.to_string() }))
    }

    /// The built-in file that stands in for one of the other program.
    pub fn stand_in(&self, path: &str) -> Option<Arc<Source>> {
        self.file(&format!("{}{path}", self.stand_in.files))
    }

    /// Whether there is a built-in folder of this name.
    pub fn has_folder(&self, name: &str) -> bool {
        has_folder(self.files, name)
    }

    /// The names of the built-in files that stand for themselves, not for an option of a group.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.files.iter().map(|(name, _)| *name).filter(|name| !name.contains('/') || name.starts_with(self.stand_in.root))
    }

    /// The built-in names below a folder, that folder's name with its `/` left out.
    pub fn names_below(&self, prefix: &str) -> impl Iterator<Item = &'static str> {
        self.files.iter().filter_map(move |(name, _)| name.strip_prefix(prefix))
    }

    /// Whether a text is one of the built-in files.
    pub fn is_built_in(&self, source: &Source) -> bool {
        source.name.starts_with(BUILT_IN_FOLDER)
    }

    /// Whether a file on disk is a built-in one word for word, as in a checkout of the project.
    pub fn is_copy_of_built_in(&self, source: &Source) -> bool {
        self.files.iter().any(|(_, text)| *text == source.text)
    }
}

impl Pack {
    /// The file of this path.
    pub fn file(&self, path: &str) -> Option<Arc<Source>> {
        let (_, text) = self.files.iter().find(|(known, _)| *known == path)?;
        Some(Arc::new(Source { name: format!("{}{path}.yaml", self.name), text: text.to_string() }))
    }

    /// Whether it has a folder of this name.
    pub fn has_folder(&self, name: &str) -> bool {
        has_folder(&self.files, name)
    }

    /// The names below a folder, that folder's name with its `/` left out.
    pub fn names_below(&self, prefix: &str) -> impl Iterator<Item = &'static str> {
        self.files.iter().filter_map(move |(name, _)| name.strip_prefix(prefix))
    }
}

fn has_folder(files: &[File], name: &str) -> bool {
    files.iter().any(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}
