//! One entry of a `defaults:` list: the file that it names, its path and its package.

use crate::error::Problem;
use crate::provenance::Origin;
use crate::tree::{Node, Value};

/// An entry of a `defaults:` list. `within` adds the folder and the package of the file that contains it.
#[derive(Debug, Clone)]
pub(crate) struct DefaultsEntry {
    pub target: Target,
    /// The package after the `@`.
    pub package: Option<String>,
    /// `optional`: a missing file is not an error.
    pub optional: bool,
    pub origin: Origin,
    /// The folder that names are relative to.
    pub folder: String,
    /// The package of the file that contains the entry.
    pub parent: String,
    /// The package in the header of the file that the entry names.
    pub header: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) enum Target {
    /// `_self_`: the file's own keys.
    Own,
    /// `- name`, `- /name`, `- name@package`.
    Path(String),
    /// `- group: option`, `- group@package: option`.
    Group { group: String, options: GroupOptions },
    /// `- override group@package: option`: chooses another option for a group of an included file.
    Choice { group: String, options: GroupOptions },
}

/// The options chosen from a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GroupOptions {
    Nothing,
    One(String),
    Several(Vec<String>),
}

impl GroupOptions {
    /// Returns the options that a value names; `None` if it names none.
    pub(super) fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Nothing),
            Value::Text(text) => Some(Self::One(text.clone())),
            Value::List(items) => {
                let text = |item: &Node| if let Value::Text(text) = &item.value { Some(text.clone()) } else { None };
                items.iter().map(text).collect::<Option<_>>().map(Self::Several)
            }
            _ => None,
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Nothing => "null".into(),
            Self::One(name) => name.clone(),
            Self::Several(names) => format!("[{}]", names.join(",")),
        }
    }
}

/// Removes the `defaults:` list from a file and returns its entries.
pub(crate) fn take_defaults(body: &mut Node) -> Result<Vec<DefaultsEntry>, Problem> {
    let Some(defaults) = body.remove("defaults") else { return Ok(vec![]) };
    let wrong = |node: &Node| {
        let message = "a `defaults:` list takes entries such as `- group: option`, `- file` and `- _self_`";
        Problem::new("defaults", message).at(&node.origin)
    };
    let Value::List(items) = &defaults.value else { return Err(wrong(&defaults)) };
    let entries: Vec<DefaultsEntry> = items.iter().map(|item| read(item).ok_or_else(|| wrong(item))).collect::<Result<_, _>>()?;
    let mut own = entries.iter().filter(|entry| matches!(entry.target, Target::Own)).skip(1);
    match own.next() {
        Some(second) => Err(Problem::new("defaults", "`_self_` is in this list twice").at(&second.origin)),
        None => Ok(entries),
    }
}

fn read(item: &Node) -> Option<DefaultsEntry> {
    let split = |text: &str| {
        let (name, package) = text.split_once('@').map_or((text, None), |(name, package)| (name, Some(package.to_string())));
        (name.trim().to_string(), package)
    };
    let entry = |target, package, optional, origin: &Origin| DefaultsEntry::new(target, package, optional, origin);
    match &item.value {
        Value::Text(text) if text == "_self_" => Some(entry(Target::Own, None, false, &item.origin)),
        Value::Text(text) => {
            let (path, package) = split(text);
            Some(entry(Target::Path(path), package, false, &item.origin))
        }
        Value::Map(map) => {
            let (Some((key, node)), 1) = (map.first(), map.len()) else { return None };
            let mut words = key.split_whitespace().rev();
            let (group, package) = split(words.next()?);
            let keywords: Vec<&str> = words.collect();
            if group.is_empty() || keywords.iter().any(|word| !matches!(*word, "override" | "optional")) {
                return None;
            }
            let options = GroupOptions::from_value(&node.value)?;
            let target = match keywords.contains(&"override") {
                true => Target::Choice { group, options },
                false => Target::Group { group, options },
            };
            Some(entry(target, package, keywords.contains(&"optional"), &node.origin))
        }
        _ => None,
    }
}

impl DefaultsEntry {
    pub(super) fn new(target: Target, package: Option<String>, optional: bool, origin: &Origin) -> Self {
        Self { target, package, optional, origin: origin.clone(), folder: String::new(), parent: String::new(), header: None }
    }

    /// Returns the entry for a file whose names are relative to `folder` and whose package is `parent`.
    pub(super) fn within(mut self, folder: &str, parent: &str) -> Self {
        self.folder = folder.to_string();
        self.parent = parent.to_string();
        if let Some(package) = self.package.take() {
            let whole = self.group_path().replace('/', ".");
            self.package = Some(match package.strip_prefix("_here_") {
                Some(below) => below.trim_start_matches('.').to_string(),
                None if package.contains("_group_") => format!("_global_.{}", package.replace("_group_", &whole)),
                None => package,
            });
        }
        self
    }

    /// Returns the name as written: the path of a file or of a group.
    fn written(&self) -> &str {
        match &self.target {
            Target::Own => "",
            Target::Path(path) => path,
            Target::Group { group, .. } | Target::Choice { group, .. } => group,
        }
    }

    /// Returns the folder of the named files, from the root.
    pub(crate) fn group_path(&self) -> String {
        let path = absolute(&self.folder, self.written());
        match self.target {
            Target::Path(_) => path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_string()),
            _ => path,
        }
    }

    /// Returns the chosen option of a group, or the name of the file; `None` if no file is chosen.
    pub(super) fn name(&self) -> Option<&str> {
        match &self.target {
            Target::Own => None,
            Target::Path(path) => Some(path.rsplit('/').next().unwrap_or(path)),
            Target::Group { options, .. } | Target::Choice { options, .. } => match options {
                GroupOptions::One(name) => Some(name),
                _ => None,
            },
        }
    }

    /// Returns the path of the named file, from the root, without `.yaml`.
    pub(super) fn path(&self) -> String {
        match &self.target {
            Target::Path(path) => absolute(&self.folder, path),
            _ => absolute(&self.group_path(), self.name().unwrap_or_default()),
        }
    }

    /// Returns the package of the file's keys: from the entry, from the header of the file, or from its folder below the parent,
    /// in this order.
    pub(crate) fn final_package(&self) -> String {
        self.joined(self.package.as_deref().or(self.header.as_deref()))
    }

    /// Returns the name by which other files and overrides choose another option of the group.
    pub(super) fn key(&self) -> String {
        let group = self.group_path();
        let package = self.joined(self.package.as_deref());
        match package.as_str() {
            package if *package == group.replace('/', ".") => group,
            "" => format!("{group}@_global_"),
            package => format!("{group}@{package}"),
        }
    }

    fn joined(&self, package: Option<&str>) -> String {
        let written = self.written().trim_start_matches('/').trim_start_matches("../");
        let folder = match self.target {
            Target::Path(_) => written.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => written,
        };
        let package = package.map_or_else(|| folder.replace('/', "."), str::to_string);
        let whole = [self.parent.as_str(), &package].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
        whole.rfind("_global_").map_or(whole.clone(), |at| whole[at + "_global_".len()..].trim_start_matches('.').to_string())
    }
}

/// Returns the package in a file's `# @package NAME` header, from the root. `_group_` is the package of a file without a header.
pub(crate) fn package_header(text: &str) -> Result<Option<String>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let header = lines.map_while(|line| line.strip_prefix('#').map(str::trim)).take_while(|line| line.starts_with('@'));
    for line in header {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["@package", "_group_"] => return Ok(None),
            ["@package", name] => return Ok(Some(format!("_global_.{name}"))),
            ["@package", ..] => return Err(format!("`# {line}`: a package is one name, as in `# @package a.b`")),
            _ => {}
        }
    }
    Ok(None)
}

/// Returns a name in a `defaults:` list as a path from the root: `/a` is relative to the root, `../a` to the parent of `folder`.
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
