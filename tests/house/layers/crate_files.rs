//! The files under `src/` and the uses between them: every path is followed, through re-exports, to the file that defines it.

use super::scan::{Named, Scan, scan};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module's names from the top of the crate.
type Module = Vec<String>;

/// One use of one file by another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    pub from: String,
    /// The file that defines the used item.
    pub to: String,
    /// The path from the top of the crate, as written: re-exports are not followed.
    pub path: Vec<String>,
}

/// All files, read.
pub(super) struct CrateFiles {
    /// The file of each module, relative to `src/`, and its scan.
    files: BTreeMap<Module, (String, Scan)>,
}

/// Every Rust file below a folder.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

impl CrateFiles {
    /// Reads the files of a library; its program, `main.rs`, is another crate.
    pub(super) fn read(src: &Path) -> Self {
        let names = rust_files(src).into_iter().map(|path| path.strip_prefix(src).unwrap().to_str().unwrap().to_owned());
        let texts = names.filter(|name| name != "main.rs").map(|name| {
            let text = std::fs::read_to_string(src.join(&name)).unwrap();
            (name, text)
        });
        Self::new(texts)
    }

    /// Reads files given as (name, text).
    pub(super) fn new(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let module = |name: &str| -> Module {
            let parts = name.trim_end_matches(".rs").split('/').map(str::to_owned);
            let mut parts: Module = parts.collect();
            if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
                parts.pop();
            }
            parts
        };
        Self { files: texts.into_iter().map(|(name, text)| (module(&name), (name, scan(&text)))).collect() }
    }

    /// Every use of one file by another, once.
    pub(super) fn uses(&self) -> BTreeSet<Use> {
        let mut uses = BTreeSet::new();
        for (module, (name, scan)) in &self.files {
            for named in &scan.named {
                let here: Module = module.iter().chain(&named.within).cloned().collect();
                let Some(path) = self.absolute(&here, named) else { continue };
                let file = self.defined(&path, 0).and_then(|to| self.file(&to));
                if let Some(to) = file.filter(|to| to != name) {
                    uses.insert(Use { from: name.clone(), to, path });
                }
            }
        }
        uses
    }

    /// The path from the top of the crate for a path written in a module; `None` for paths outside this crate.
    fn absolute(&self, here: &Module, named: &Named) -> Option<Vec<String>> {
        let (first, rest) = named.path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => vec![],
            "self" => here.clone(),
            "super" => here[..here.len().checked_sub(1)?].to_vec(),
            name if self.has_module(here, name) => [here.as_slice(), &[name.to_owned()]].concat(),
            // A name that a `use` of this module binds, in a path in code: `lookup::find` after `use super::lookup`.
            name if named.binds.is_none() => self.bound(here, name)?,
            _ => return None,
        };
        for part in rest {
            match part.as_str() {
                "super" => drop(at.pop()),
                part => at.push(part.to_owned()),
            }
        }
        Some(at)
    }

    /// The path from the top that a `use` of a module binds to a name.
    fn bound(&self, module: &Module, name: &str) -> Option<Vec<String>> {
        self.named(module).find(|named| named.binds.as_deref() == Some(name)).and_then(|named| self.absolute(module, named))
    }

    /// The module that defines the item at a path, or the deepest module on the way if that is unknown.
    fn defined(&self, path: &[String], depth: usize) -> Option<Module> {
        let mut module: Module = vec![];
        for (index, part) in path.iter().enumerate() {
            let is_last = index + 1 == path.len();
            let next = [module.as_slice(), std::slice::from_ref(part)].concat();
            if self.has_module(&module, part) && !(is_last && self.bound(&module, part).is_some_and(|to| to != next)) {
                module = next;
                continue;
            }
            return Some(self.definer(&module, part, true, depth).unwrap_or(module));
        }
        Some(module)
    }

    /// The module that defines a name visible in `module`: visible to modules below it if `inside`, else to all.
    fn definer(&self, module: &Module, name: &str, inside: bool, depth: usize) -> Option<Module> {
        if depth > 8 {
            return None;
        }
        if self.defines(module, name) {
            return Some(module.clone());
        }
        let is_seen = |named: &&Named| inside || named.is_public;
        let bound = self.named(module).filter(is_seen).find(|named| named.binds.as_deref() == Some(name));
        if let Some(path) = bound.and_then(|named| self.absolute(module, named)) {
            return self.defined(&path, depth + 1);
        }
        let globs = self.named(module).filter(is_seen).filter(|named| named.binds.as_deref() == Some("*"));
        let globs: Vec<Vec<String>> = globs.filter_map(|named| self.absolute(module, named)).collect();
        globs.iter().find_map(|path| {
            let from = self.defined(path, depth + 1)?;
            if from == *module { None } else { self.definer(&from, name, module.starts_with(&from), depth + 1) }
        })
    }

    /// The file that holds a module, and the names of inline modules between them.
    fn holder<'a>(&self, module: &'a [String]) -> Option<(&(String, Scan), &'a [String])> {
        (0..=module.len()).rev().find_map(|length| Some((self.files.get(&module[..length])?, &module[length..])))
    }

    fn file(&self, module: &Module) -> Option<String> {
        self.holder(module).map(|((name, _), _)| name.clone())
    }

    fn has_module(&self, module: &Module, name: &str) -> bool {
        let declared = |(scan, within): (&Scan, &[String])| {
            scan.modules.iter().any(|(around, module)| around.as_slice() == within && module == name)
        };
        self.holder(module).is_some_and(|((_, scan), within)| declared((scan, within)))
    }

    fn defines(&self, module: &Module, name: &str) -> bool {
        self.holder(module)
            .is_some_and(|((_, scan), within)| scan.defines.iter().any(|one| one.within.as_slice() == within && one.name == name))
    }

    fn named<'a>(&'a self, module: &'a Module) -> impl Iterator<Item = &'a Named> {
        let held = self.holder(module);
        held.into_iter().flat_map(|((_, scan), within)| scan.named.iter().filter(move |named| named.within.as_slice() == within))
    }
}

/// The circles of a graph: each is a set of nodes that all reach each other.
pub(super) fn circles(arrows: &BTreeSet<(String, String)>) -> Vec<BTreeSet<String>> {
    let reach = |start: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![start];
        while let Some(node) = next.pop() {
            for (_, to) in arrows.iter().filter(|(from, _)| from == node) {
                if reached.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        reached
    };
    let nodes: BTreeSet<&String> = arrows.iter().map(|(from, _)| from).collect();
    let reached: BTreeMap<&String, BTreeSet<String>> = nodes.iter().map(|node| (*node, reach(node))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for node in &nodes {
        let is_known = found.iter().any(|circle| circle.contains(*node));
        if reached[node].contains(*node) && !is_known {
            let back = |other: &&String| reached.get(other).is_some_and(|reached| reached.contains(*node));
            found.push(reached[node].iter().filter(back).cloned().collect());
        }
    }
    found
}
