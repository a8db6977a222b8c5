//! `sources.json`: checksums of what settings name, such as models, rows and reward functions. A resumed run compares these, so that
//! a path may be spelled in another way, and what has changed under the same path is noticed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use burnish_util::foreign;
use burnish_util::fs::{read_json, write_json};

const FILE_NAME: &str = "sources.json";

/// The checksum of what each setting names, by its dotted key. Behind the key may stand, in parentheses, a part of it. The first word of
/// a value says which files count, for a model whose weights are not read has no checksum of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources(pub BTreeMap<String, String>);

impl Sources {
    /// Reads the checksums in a checkpoint's folder; those of an old checkpoint are not known.
    ///
    /// # Errors
    /// A damaged file.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        if foreign::is_there(&path)? { read_json(&path) } else { Ok(Self::default()) }
    }

    /// Writes the checksums into a checkpoint's folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(FILE_NAME), self)
    }

    /// Says whether what a setting names is the same on both sides; `None` if one side does not know.
    pub(super) fn same(&self, other: &Self, key: &str) -> Option<bool> {
        let [own, other] = [self, other].map(|side| side.0.get(key)?.split_once(' '));
        let ((what, own), (of_other, other)) = (own?, other?);
        (what == of_other).then_some(own == other)
    }

    /// Returns the entries whose contents differ, of those that both sides know.
    pub(super) fn differing<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter(|key| self.same(other, key) == Some(false)).map(String::as_str)
    }
}
