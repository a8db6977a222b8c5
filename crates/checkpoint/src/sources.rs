//! `sources.json`: checksums of the contents that settings name, such as models, rows and reward functions. A resumed run
//! compares them. So a path may be spelled in another way, and changed contents under the same path are noticed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use burnish_util::foreign;
use burnish_util::fs::{read_json, write_json};

const FILE_NAME: &str = "sources.json";

/// Checksums of the contents that settings name, by dotted key. The key may be followed by a part of the contents, in
/// parentheses. The first word of a value tells which files count: a model whose weights are not read has no checksum of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources(pub BTreeMap<String, String>);

impl Sources {
    /// Reads the checksums in a checkpoint's folder. Old checkpoints have none.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        if foreign::is_there(&path)? { read_json(&path) } else { Ok(Self::default()) }
    }

    /// Writes the checksums into a checkpoint's folder.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(FILE_NAME), self)
    }

    /// Returns true if the contents of a setting are the same on both sides; `None` if one side does not know them.
    pub(super) fn same(&self, other: &Self, key: &str) -> Option<bool> {
        let [digest, other] = [self, other].map(|side| side.0.get(key)?.split_once(' '));
        let ((what, digest), (of_other, other)) = (digest?, other?);
        (what == of_other).then_some(digest == other)
    }

    /// Returns the entries that both sides know and whose contents differ.
    pub(super) fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter(|key| self.same(other, key) == Some(false)).map(String::as_str)
    }
}
