//! One tree from many files: `defaults:` lists, groups, packages. The rules are those of Hydra 1.3.

pub mod merge;

mod entry;
mod layers;

use super::compat::Ignored;
use super::error::Problem;
use super::hydra::Adapt;
use super::interpolate;
use super::lookup::{self, SearchPath};
use super::overrides::Override;
use super::provenance::Source;
use super::tree::{Node, Value};
use super::yaml;
use entry::Entry;
use merge::Keys;
use std::path::PathBuf;
use std::sync::Arc;

/// A file that was read, without its `defaults:` list.
#[derive(Clone)]
pub struct File {
    source: Arc<Source>,
    body: Node,
    entries: Vec<Entry>,
    /// The package that its header names.
    header: Option<String>,
}

impl File {
    pub fn read(source: Arc<Source>) -> Result<Self, Problem> {
        let mut body = yaml::parse(&source)?;
        if !matches!(body.value, Value::Map(_)) {
            return Err(Problem::new("", "a configuration file holds a mapping (key: value)").at(&body.origin));
        }
        let entries = entry::take_defaults(&mut body)?;
        let header = entry::package_header(&source.text).map_err(|message| Problem::new("", message).at(&body.origin))?;
        Ok(Self { source, body, entries, header })
    }

    /// The folders that `hydra.searchpath` of the primary file names, or those of an override of it.
    pub fn search_folders(&self, from_override: Option<&Node>) -> Result<Vec<PathBuf>, Problem> {
        let Some(node) = from_override.or_else(|| self.body.get("hydra.searchpath")) else { return Ok(vec![]) };
        let wrong = |node: &Node| {
            Problem::new("hydra.searchpath", "`hydra.searchpath`: only folders can be searched")
                .at(&node.origin)
                .help("write a list of file://FOLDER")
        };
        let Value::List(items) = &node.value else {
            return if node.value == Value::Null { Ok(vec![]) } else { Err(wrong(node)) };
        };
        let folder = |item: &Node| {
            let Value::Text(text) = &item.value else { return Err(wrong(item)) };
            let resolved = interpolate::text(&self.body, text, &item.origin)?;
            let Value::Text(text) = &resolved.value else { return Err(wrong(item)) };
            match text.strip_prefix("file://") {
                Some(folder) => Ok(folder.into()),
                None if text.contains("://") => Err(wrong(item)),
                None => Ok(text.into()),
            }
        };
        items.iter().map(folder).collect()
    }

    /// Whether built-in files are among those it is made of, so that their groups are groups here.
    pub fn uses_built_in(&self, search: &SearchPath) -> bool {
        let folder = search.primary.rsplit_once('/').map_or("", |(folder, _)| folder);
        lookup::is_built_in(&self.source) || self.includes_built_in(folder, search, &mut vec![self.source.clone()])
    }

    fn includes_built_in(&self, folder: &str, search: &SearchPath, reading: &mut Vec<Arc<Source>>) -> bool {
        let entries = self.entries.iter().map(|entry| entry.clone().within(folder, ""));
        entries.filter(|entry| entry.name().is_some()).any(|entry| {
            let Ok(Some(source)) = search.find(&entry.path(), reading) else { return false };
            reading.push(source.clone());
            lookup::is_built_in(&source)
                || File::read(source).is_ok_and(|file| file.includes_built_in(&entry.group_path(), search, reading))
        })
    }
}

/// Merges the primary file and everything that its `defaults:` list names; also returns settings of Hydra itself, which have
/// no effect. `groups` are the overrides that choose options of groups.
pub fn compose(
    primary: File,
    search: &SearchPath,
    groups: &[Override],
    adapt: &dyn Adapt,
) -> Result<(Node, Vec<Ignored>), Problem> {
    let primary_source = primary.source.clone();
    let mut root = Node::new(Value::Map(vec![]), primary.body.origin.clone());
    let (list, hydra) = layers::layers(primary, search, groups)?;
    let mut ignored: Vec<Ignored> =
        hydra.into_iter().map(|(group, options)| Ignored::hydra(group, &Value::Text(options.shown()))).collect();
    for layer in list {
        let mut body = laid_at(&layer.package, layer.file.body.clone());
        if let Some(settings) = body.remove("hydra") {
            let may_search = Arc::ptr_eq(&layer.file.source, &primary_source);
            ignored.extend(ignored_settings(settings, may_search)?);
        }
        merge::merge(&mut root, "", adapt.file(body)?, Keys::MayBeNew)?;
    }
    Ok((root, ignored))
}

/// Hydra's own settings of one file. Where to search is said by the primary file alone.
fn ignored_settings(settings: Node, may_search: bool) -> Result<Vec<Ignored>, Problem> {
    let Value::Map(map) = settings.value else { return Ok(vec![Ignored::hydra("hydra".into(), &settings.value)]) };
    let mut ignored = vec![];
    for (name, node) in map {
        match name.as_str() {
            "searchpath" if may_search => {}
            "searchpath" => {
                let message = "`hydra.searchpath` can only be set in the primary file";
                return Err(Problem::new("hydra.searchpath", message).at(&node.origin));
            }
            _ => ignored.push(Ignored::hydra(format!("hydra.{name}"), &node.value)),
        }
    }
    Ok(ignored)
}

/// The keys of a file below its package.
fn laid_at(package: &str, body: Node) -> Node {
    if package.is_empty() {
        return body;
    }
    let mut nested = Node::new(Value::Map(vec![]), body.origin.clone());
    nested.put(package, body);
    nested
}
