//! One tree from many files: `defaults:` lists, groups, packages. Hydra's rules, as far as verl's files use them.

use super::error::Problem;
use super::hydra::Adapt;
use super::ignored::Ignored;
use super::lookup::SearchPath;
use super::overrides::{Operation, Override};
use super::provenance::{Origin, Source};
use super::suggest;
use super::tree::{Node, Value};
use super::yaml;
use std::sync::Arc;

/// An entry of a `defaults:` list.
struct Entry {
    target: Target,
    origin: Origin,
}

enum Target {
    /// `_self_`: the file's own keys.
    Own,
    /// `- name`, `- /name`, `- name@package`.
    File { path: String, package: Option<String> },
    /// `- group: option`, `- group@package: option`, with several options where a list is given.
    Group { group: String, package: Option<String>, options: Vec<String>, optional: bool },
    /// `- override group@package: option`: another choice for a group of an included file.
    Choice(Choice),
}

/// Which option of a group is taken, in place of the one in the `defaults:` list.
struct Choice {
    group: String,
    package: String,
    /// `None` leaves the group out.
    option: Option<String>,
    origin: Origin,
    used: bool,
}

/// A file that is being read: where its keys go, and from where its relative names count.
struct Place {
    package: String,
    folder: String,
}

/// A file to be read for an entry of a `defaults:` list.
struct Include {
    path: String,
    folder: String,
    /// The package that the entry names.
    package: Option<String>,
    /// Its package if neither the entry nor its header names one.
    default: String,
    optional: bool,
    origin: Origin,
}

struct Composer<'a> {
    search: &'a SearchPath,
    adapt: &'a dyn Adapt,
    choices: Vec<Choice>,
    reading: Vec<Arc<Source>>,
}

/// Reads `primary` and everything that its `defaults:` list names; also returns its settings of Hydra, which have no effect.
/// `groups` are the overrides that choose options of groups.
pub fn compose(
    primary: Arc<Source>,
    search: &mut SearchPath,
    groups: &[Override],
    adapt: &dyn Adapt,
) -> Result<(Node, Vec<Ignored>), Problem> {
    let mut body = yaml::parse(&primary)?;
    let (folders, ignored) = take_hydra(&mut body)?;
    search.folders.extend(folders);
    let mut entries = take_defaults(&mut body)?;
    let mut composer = Composer { search, adapt, choices: vec![], reading: vec![primary.clone()] };
    for group in groups {
        let option = group.value.as_ref().and_then(|node| node.value.plain_text()).filter(|text| text != "null");
        let package = group.package.clone().unwrap_or_else(|| group.key.replace('/', "."));
        match (group.operation, option) {
            (Operation::Add | Operation::Force, Some(option)) => {
                let target = Target::Group {
                    group: format!("/{}", group.key),
                    package: Some(package),
                    options: vec![option],
                    optional: false,
                };
                entries.push(Entry { target, origin: group.origin.clone() });
            }
            (_, option) => {
                composer.choices.push(Choice {
                    group: group.key.clone(),
                    package,
                    option,
                    origin: group.origin.clone(),
                    used: false,
                });
            }
        }
    }
    let mut root = Node::new(Value::Map(vec![]), body.origin.clone());
    let place = Place { package: String::new(), folder: String::new() };
    composer.file(&place, body, entries, &mut root)?;
    match composer.choices.iter().find(|choice| !choice.used) {
        Some(unused) => Err(Problem::new("", format!("no `defaults:` list has the group `{}@{}`", unused.group, unused.package))
            .at(&unused.origin)
            .help("to add it, put a + in front")),
        None => Ok((root, ignored)),
    }
}

impl Composer<'_> {
    fn file(&mut self, place: &Place, body: Node, mut entries: Vec<Entry>, root: &mut Node) -> Result<(), Problem> {
        if !entries.iter().any(|entry| matches!(entry.target, Target::Own)) {
            entries.push(Entry { target: Target::Own, origin: body.origin.clone() });
        }
        self.take_choices(place, &mut entries);
        let mut body = Some(body);
        for entry in entries {
            match entry.target {
                Target::Own => {
                    if let Some(body) = body.take() {
                        root.merge(self.adapt.file(laid_at(&place.package, body))?);
                    }
                }
                Target::Choice(_) => {}
                Target::File { path, package } => {
                    let path = absolute(&place.folder, &path);
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_string();
                    let below = folder.strip_prefix(&place.folder).unwrap_or(&folder).trim_matches('/');
                    let default = below.replace('/', ".");
                    let include = Include { path, folder, package, default, optional: false, origin: entry.origin };
                    self.include(&place.package, include, root)?;
                }
                Target::Group { group, package, options, optional } => {
                    let folder = absolute(&place.folder, &group);
                    let default = group.trim_start_matches('/').trim_start_matches("../").replace('/', ".");
                    let target = join_package(&place.package, package.as_deref().unwrap_or(&default));
                    let (options, origin) = self.chosen(&folder, &target, options, &entry.origin);
                    for option in options {
                        let (path, folder, package) = (absolute(&folder, &option), folder.clone(), package.clone());
                        let (default, origin) = (default.clone(), origin.clone());
                        let include = Include { path, folder, package, default, optional, origin };
                        self.include(&place.package, include, root)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads one more file into the tree.
    fn include(&mut self, parent: &str, include: Include, root: &mut Node) -> Result<(), Problem> {
        let Include { path, folder, package, default, optional, origin } = include;
        let Some(source) = self.search.find(&path, &self.reading)? else {
            return if optional { Ok(()) } else { Err(self.not_found(&path, &folder).at(&origin)) };
        };
        let package = match (package, package_header(&source.text)) {
            (Some(package), _) => join_package(parent, &package),
            (None, Some("_group_")) => folder.replace('/', "."),
            (None, Some(header)) => join_package("", header),
            (None, None) => join_package(parent, &default),
        };
        let mut body = yaml::parse(&source)?;
        let entries = take_defaults(&mut body)?;
        self.reading.push(source);
        self.file(&Place { package, folder }, body, entries, root)?;
        self.reading.pop();
        Ok(())
    }

    /// Notes the `override` entries of a file, for the files it includes. What an outer file chose stays.
    fn take_choices(&mut self, place: &Place, entries: &mut [Entry]) {
        for entry in entries {
            if let Target::Choice(choice) = &mut entry.target {
                let group = absolute(&place.folder, &choice.group);
                let package = join_package(&place.package, &choice.package);
                if !self.choices.iter().any(|known| known.group == group && known.package == package) {
                    let option = choice.option.take();
                    self.choices.push(Choice { group, package, option, origin: entry.origin.clone(), used: false });
                }
            }
        }
    }

    fn chosen(&mut self, group: &str, package: &str, options: Vec<String>, origin: &Origin) -> (Vec<String>, Origin) {
        let mut chosen = (options, origin.clone());
        for choice in self.choices.iter_mut().filter(|choice| choice.group == group && choice.package == package) {
            choice.used = true;
            chosen = (choice.option.iter().cloned().collect(), choice.origin.clone());
        }
        chosen
    }

    fn not_found(&self, path: &str, folder: &str) -> Problem {
        let name = path.rsplit('/').next().unwrap_or(path);
        if self.reading.iter().any(|source| source.name.contains(&format!("{path}.yaml"))) {
            return Problem::new("", format!("`{path}` includes itself"));
        }
        let options = self.search.options(folder);
        let meant = suggest::did_you_mean(suggest::closest(name, options.iter().map(String::as_str)));
        let there = match (options.is_empty(), folder) {
            (true, _) => format!("there is no folder `{folder}` with configuration files"),
            (false, "") => format!("there are: {}", options.join(", ")),
            (false, _) => format!("`{folder}` has: {}", options.join(", ")),
        };
        let help: Vec<String> = meant.into_iter().chain([there]).collect();
        Problem::new("", format!("there is no configuration `{path}`")).help(help.join("\n"))
    }
}

/// Takes the `defaults:` list out of a file.
fn take_defaults(body: &mut Node) -> Result<Vec<Entry>, Problem> {
    if !matches!(body.value, Value::Map(_)) {
        return Err(Problem::new("", "a configuration file holds a mapping (key: value)").at(&body.origin));
    }
    let Some(defaults) = body.remove("defaults") else { return Ok(vec![]) };
    let wrong = |node: &Node| {
        Problem::new("defaults", "a `defaults:` list has entries such as `- group: option`, `- file` and `- _self_`")
            .at(&node.origin)
    };
    let Value::List(items) = &defaults.value else { return Err(wrong(&defaults)) };
    items.iter().map(|item| entry(item).ok_or_else(|| wrong(item))).collect()
}

fn entry(item: &Node) -> Option<Entry> {
    let origin = item.origin.clone();
    let with_package = |text: &str| {
        let (name, package) = text.split_once('@').map_or((text, None), |(name, package)| (name, Some(package.to_string())));
        (name.trim().to_string(), package)
    };
    let target = match &item.value {
        Value::Text(text) if text == "_self_" => Target::Own,
        Value::Text(text) => {
            let (path, package) = with_package(text);
            Target::File { path, package }
        }
        Value::Map(map) => {
            let [(key, node)] = map.as_slice() else { return None };
            let (keyword, name) = key.rsplit_once(' ').map_or(("", key.as_str()), |(keyword, name)| (keyword.trim(), name));
            let (group, package) = with_package(name);
            let options: Vec<String> = match &node.value {
                Value::Null => vec![],
                Value::List(items) => items.iter().map(|item| item.value.plain_text()).collect::<Option<_>>()?,
                value => vec![value.plain_text()?],
            };
            match keyword {
                "override" => {
                    let package = package.unwrap_or_else(|| group.trim_start_matches('/').replace('/', "."));
                    let option = options.into_iter().next();
                    Target::Choice(Choice { group, package, option, origin: node.origin.clone(), used: false })
                }
                "" | "optional" => Target::Group { group, package, options, optional: keyword == "optional" },
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Entry { target, origin })
}

/// Takes Hydra's own settings out of the primary file: the folders of its `searchpath`, and what means nothing here.
fn take_hydra(body: &mut Node) -> Result<(Vec<std::path::PathBuf>, Vec<Ignored>), Problem> {
    let (mut folders, mut ignored) = (vec![], vec![]);
    let Some(Node { value: Value::Map(settings), .. }) = body.remove("hydra") else { return Ok((folders, ignored)) };
    for (name, node) in &settings {
        match (name.as_str(), &node.value) {
            ("searchpath", Value::List(items)) => {
                for item in items {
                    let text = item.value.plain_text();
                    let folder = text.as_deref().and_then(|text| text.strip_prefix("file://")).ok_or_else(|| {
                        Problem::new("hydra.searchpath", "`hydra.searchpath`: only folders can be searched")
                            .at(&item.origin)
                            .help("write file://FOLDER")
                    })?;
                    folders.push(folder.into());
                }
            }
            _ => ignored.push(Ignored::hydra(format!("hydra.{name}"), &node.value)),
        }
    }
    Ok((folders, ignored))
}

/// The package in a file's `# @package NAME` header.
fn package_header(text: &str) -> Option<&str> {
    let comments = text.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#'));
    comments.filter_map(|line| line.trim_start_matches('#').trim().strip_prefix("@package")).map(str::trim).next()
}

/// A name in a `defaults:` list as a path from the top: `/a` counts from there, `../a` from one folder up.
fn absolute(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = if name.starts_with('/') { vec![] } else { folder.split('/').filter(|p| !p.is_empty()).collect() };
    for part in name.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A package relative to its parent's; `_global_` is the top, `_here_` the parent's own.
fn join_package(parent: &str, package: &str) -> String {
    if let Some(global) = package.strip_prefix("_global_") {
        return global.trim_start_matches('.').to_string();
    }
    let own = package.strip_prefix("_here_").unwrap_or(package).trim_start_matches('.');
    [parent, own].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
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
