//! One file of a composition, split into keys, `defaults:` list and header.

use super::entry::{self, DefaultsEntry};
use crate::error::Problem;
use crate::interpolation;
use crate::lookup::SearchPath;
use crate::provenance::YamlSource;
use crate::tree::{Node, Value};
use crate::yaml;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that was read, without its `defaults:` list and header.
#[derive(Clone)]
pub(crate) struct ConfigFile {
    pub(super) source: Arc<YamlSource>,
    pub(super) body: Node,
    pub(super) entries: Vec<DefaultsEntry>,
    /// The package in the file's header.
    pub(super) header: Option<String>,
}

impl ConfigFile {
    pub(crate) fn read(source: Arc<YamlSource>) -> Result<Self, Problem> {
        let mut body = yaml::parse(&source)?;
        if !matches!(body.value, Value::Map(_)) {
            return Err(Problem::new("", "a configuration file holds a mapping (key: value)").at(&body.origin));
        }
        let entries = entry::take_defaults(&mut body)?;
        let header = entry::package_header(&source.text).map_err(|message| Problem::new("", message).at(&body.origin))?;
        Ok(Self { source, body, entries, header })
    }

    /// Returns the folders in `hydra.searchpath`, from the override or else from the primary file.
    pub(crate) fn search_folders(&self, from_override: Option<&Node>) -> Result<Vec<PathBuf>, Problem> {
        let Some(node) = from_override.or_else(|| self.body.get("hydra.searchpath")) else { return Ok(vec![]) };
        let wrong = |node: &Node| {
            Problem::new("hydra.searchpath", "`hydra.searchpath` takes only folders")
                .at(&node.origin)
                .help("write a list of file://FOLDER")
        };
        let Value::List(items) = &node.value else {
            return if node.value == Value::Null { Ok(vec![]) } else { Err(wrong(node)) };
        };
        let folder = |item: &Node| {
            let Value::Text(text) = &item.value else { return Err(wrong(item)) };
            let resolved = interpolation::text(&self.body, text, &item.origin)?;
            let Value::Text(text) = &resolved.value else { return Err(wrong(item)) };
            match text.strip_prefix("file://") {
                Some(folder) => Ok(folder.into()),
                None if text.contains("://") => Err(wrong(item)),
                None => Ok(text.into()),
            }
        };
        items.iter().map(folder).collect()
    }

    /// Returns true if the file includes built-in files, so that it may use their groups.
    pub(crate) fn uses_built_in(&self, search: &SearchPath) -> bool {
        let folder = search.primary.rsplit_once('/').map_or("", |(folder, _)| folder);
        search.library.is_built_in(&self.source) || self.includes_built_in(folder, search, &mut vec![self.source.clone()])
    }

    fn includes_built_in(&self, folder: &str, search: &SearchPath, reading: &mut Vec<Arc<YamlSource>>) -> bool {
        let entries = self.entries.iter().map(|entry| entry.clone().within(folder, ""));
        entries.filter(|entry| entry.name().is_some()).any(|entry| {
            let Ok(Some(source)) = search.find(&entry.path(), reading) else { return false };
            reading.push(source.clone());
            search.library.is_built_in(&source)
                || ConfigFile::read(source).is_ok_and(|file| file.includes_built_in(&entry.group_path(), search, reading))
        })
    }
}
