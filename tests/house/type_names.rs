//! One name means one type. A type that other files can use is the only one of its name in its crate, and a `pub` type the only
//! one in the workspace. Private types of a file may have short names.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::layers::{crates, rust_files};

/// A definition of a type that other files can use.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TypeDefinition {
    name: String,
    is_public: bool,
}

/// Returns the visible types of a file. Two definitions of one name in one file are two builds of one type (`cfg`).
fn visible_types(text: &str) -> BTreeSet<TypeDefinition> {
    let definition = Regex::new(r"(?m)^\s*pub(\([^)]*\))? (?:unsafe )?(?:struct|enum|trait|type|union) (\w+)").unwrap();
    let definitions = definition.captures_iter(text);
    definitions.map(|found| TypeDefinition { name: found[2].to_owned(), is_public: found.get(1).is_none() }).collect()
}

/// Returns the names that more than one file defines, with these files, among (crate, path, text).
fn shared_names(sources: &[(String, String, String)]) -> Vec<String> {
    let mut by_name: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for (package, path, text) in sources {
        for TypeDefinition { name, is_public } in visible_types(text) {
            by_name.entry((name.clone(), format!("crate {package}"))).or_default().insert(path);
            if is_public {
                by_name.entry((name, "workspace".to_owned())).or_default().insert(path);
            }
        }
    }
    by_name.retain(|_, paths| paths.len() > 1);
    by_name.iter().map(|((name, scope), paths)| format!("{name} in the {scope}: {paths:?}")).collect()
}

#[test]
fn each_visible_type_has_its_own_name() {
    let mut sources = Vec::new();
    for (package, folder) in crates() {
        for path in rust_files(&folder) {
            let text = std::fs::read_to_string(&path).unwrap();
            sources.push((package.clone(), path.to_str().unwrap().to_owned(), text));
        }
    }
    assert!(sources.len() > 1000, "the walk found {} files", sources.len());
    let shared = shared_names(&sources);
    assert!(shared.is_empty(), "give each type its own noun, such as `FoundDevice`:\n{}", shared.join("\n"));
}

#[test]
fn the_walk_finds_shared_names() {
    let source = |package: &str, path: &str, text: &str| (package.to_owned(), path.to_owned(), text.to_owned());
    let sources = [
        source("a", "a/one.rs", "pub struct Row;\nstruct Part;\npub(crate) enum State {}"),
        source("a", "a/two.rs", "struct Part;\n    pub(super) type State = Row;\nimpl Row { type Part = Row; }"),
        source("b", "b/one.rs", "pub trait Row {}\npub(crate) struct State;\n#[cfg(x)]\npub struct X;\n#[cfg(y)]\npub struct X;"),
    ];
    assert_eq!(
        shared_names(&sources),
        [r#"Row in the workspace: {"a/one.rs", "b/one.rs"}"#, r#"State in the crate a: {"a/one.rs", "a/two.rs"}"#]
    );
}
