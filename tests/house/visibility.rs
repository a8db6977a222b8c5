//! A public function or constant of a crate is used by another crate; `pub(crate)` is for the others. rustc then finds
//! unused ones.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use crate::docs::root;
use crate::layers::{crates, rust_files};

/// Returns the names of the public functions, methods and constants of a file.
fn public_names(text: &str) -> Vec<&str> {
    static DEFINITION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^\s*pub (?:(?:const |async |unsafe )*fn|const) (\w+)").unwrap());
    DEFINITION.captures_iter(text).map(|found| found.get(1).unwrap().as_str()).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

/// Returns the public names among (place, path, text) whose word occurs in one place only. Names with another name outside (`as`)
/// are left out.
fn unused(sources: &[(String, String, String)]) -> Vec<String> {
    let mut places: HashMap<&str, Option<&str>> = HashMap::new();
    let mut renamed = BTreeSet::new();
    for (place, _, text) in sources {
        let mut last = "";
        for word in words(text) {
            places.entry(word).and_modify(|known| *known = known.filter(|known| known == place)).or_insert(Some(place));
            if word == "as" {
                renamed.insert(last);
            }
            last = word;
        }
    }
    let checked = sources.iter().filter(|(_, path, _)| path.starts_with("crates/") && !path.ends_with("/example.rs"));
    let names = checked.flat_map(|(_, path, text)| public_names(text).into_iter().map(move |name| (path, name)));
    let is_unused = |name: &str| places[name].is_some() && !renamed.contains(name);
    names.filter(|(_, name)| is_unused(name)).map(|(path, name)| format!("{path}: {name}")).collect()
}

#[test]
fn a_public_name_is_used_by_another_crate() {
    let own = ["src", "tests", "benches", "examples"].map(|folder| ("burnish".to_owned(), root().join(folder)));
    let sources = own.into_iter().chain(crates().into_iter().skip(1));
    let files = sources.flat_map(|(place, folder)| rust_files(&folder).into_iter().map(move |file| (place.clone(), file)));
    let read = |(place, file): (String, std::path::PathBuf)| {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        (place, path, std::fs::read_to_string(file).unwrap())
    };
    let unused = unused(&files.map(read).collect::<Vec<_>>());
    assert!(unused.is_empty(), "only their own crate uses these: make them pub(crate), or delete them\n{}", unused.join("\n"));
}

#[test]
fn public_names_are_found() {
    let source = |place: &str, text: &str| (place.to_owned(), format!("crates/{place}/src/lib.rs"), text.to_owned());
    let library = "pub fn used() {}\n    pub const fn alone<T>() {}\npub const ALSO: u8 = 0;\npub(crate) fn kept() {}\npub struct Other;\n\
                   pub unsafe fn bare() {}\npub use a::inner as outer;\npub fn inner() {}\n";
    let found = unused(&[source("a", library), source("b", "a::used()")]);
    assert_eq!(found, ["alone", "ALSO", "bare"].map(|name| format!("crates/a/src/lib.rs: {name}")));
}
