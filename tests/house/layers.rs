//! Dependencies point in one direction: between the folders of the root package, and between the files of each crate. Cargo
//! refuses circles between crates.

mod crate_files;
mod faces;
mod scan;

pub(crate) use crate_files::rust_files;
use crate_files::{CrateFiles, Use, circles};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folders of the root package, from the ground up, and the folders of it that each may use. The `Cargo.toml` of a crate
/// states which crates it may use.
const RULES: &[(&str, &[&str])] =
    &[("job", &[]), ("trainer", &["job"]), ("pipelines", &["job"]), ("cli", &["job", "pipelines", "trainer"])];

/// The `src` folders of all crates, the root package first, by the name of the crate.
pub(crate) fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap());
    let mut crates: Vec<(String, PathBuf)> =
        folders.map(|entry| (entry.file_name().into_string().unwrap(), entry.path().join("src"))).collect();
    crates.sort();
    crates.insert(0, ("burnish".to_owned(), root.join("src")));
    crates
}

/// The folder of `src/` with a file; `None` for `lib.rs`.
fn folder(file: &str) -> Option<&str> {
    file.split_once('/').map(|(folder, _)| folder)
}

#[test]
fn every_folder_has_a_rule() {
    let entries = std::fs::read_dir(&crates()[0].1).unwrap().map(|entry| entry.unwrap());
    let mut folders: Vec<String> =
        entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap()).collect();
    let mut ruled: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
    folders.sort();
    ruled.sort();
    assert_eq!(folders, ruled, "each folder of src/ needs a line in RULES that says what it may use");
}

#[test]
fn folders_use_only_what_is_below_them() {
    let mut wrong = vec![];
    for Use { from, path, .. } in CrateFiles::read(&crates()[0].1).uses() {
        let Some(own) = folder(&from) else { continue };
        let (_, may) = RULES.iter().find(|(name, _)| *name == own).unwrap();
        let is_folder = |name: &&String| RULES.iter().any(|(known, _)| known == name);
        let Some(used) = path.first().filter(is_folder) else { continue };
        if used != own && !may.contains(&used.as_str()) {
            wrong.push(format!("{from}: {own} may not use {}", path.join("::")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The root package re-exports every crate under its short name, so that users of the library write `burnish::model`.
#[test]
fn every_crate_is_re_exported() {
    let lib = std::fs::read_to_string(crates()[0].1.join("lib.rs")).unwrap();
    for (name, _) in &crates()[1..] {
        let name = name.replace('-', "_");
        assert!(lib.contains(&format!("pub use burnish_{name}")), "src/lib.rs does not re-export burnish_{name}");
    }
}

#[test]
fn every_crate_is_in_the_table_of_contributing() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("CONTRIBUTING.md")).unwrap();
    let cells: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(1)).collect();
    for (name, _) in &crates()[1..] {
        assert!(
            cells.iter().any(|cell| cell.contains(&format!("`{name}`"))),
            "CONTRIBUTING.md has no row for the crate `{name}`"
        );
    }
}

#[test]
fn files_do_not_use_each_other_in_a_circle() {
    let mut found = vec![];
    for (name, src) in crates() {
        let uses = CrateFiles::read(&src).uses();
        let arrows: BTreeSet<(String, String)> = uses.iter().map(|one| (one.from.clone(), one.to.clone())).collect();
        for circle in circles(&arrows) {
            found.push(format!("\nthese files of {name} use each other:"));
            for (from, to) in arrows.iter().filter(|(from, to)| circle.contains(from) && circle.contains(to)) {
                let between = uses.iter().filter(|one| one.from == *from && one.to == *to);
                let names: BTreeSet<&str> = between.filter_map(|one| one.path.last().map(String::as_str)).collect();
                found.push(format!("  {from} uses {to}: {}", names.into_iter().collect::<Vec<_>>().join(", ")));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The scan finds every kind of path: trees of `use`, `super`, `self`, paths in bodies, children without a `use`, re-exports and
/// globs.
#[test]
fn circles_are_seen_however_a_path_is_written() {
    let seen = |files: &[(&str, &str)]| {
        let uses = CrateFiles::new(files.iter().map(|(name, text)| (name.to_string(), text.to_string()))).uses();
        uses.into_iter().map(|one| format!("{} {}", one.from, one.to)).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let lib = ("lib.rs", "mod a; mod b;");
    let a = |text: &'static str| {
        [lib, ("a.rs", text), ("b/mod.rs", "mod c; pub use c::C; pub struct B;"), ("b/c.rs", "pub struct C;")]
    };
    let own = "b/mod.rs b/c.rs";
    assert_eq!(seen(&a("use crate::{b::{B}};")), ["a.rs b/mod.rs", own]);
    assert_eq!(seen(&a("use super::b::C;")), ["a.rs b/c.rs", own]);
    assert_eq!(seen(&a("use super::b; fn f() { b::C; }")), ["a.rs b/c.rs", "a.rs b/mod.rs", own]);
    assert_eq!(seen(&a("fn f() { crate::b::c::C; }")), ["a.rs b/c.rs", own]);
    assert_eq!(seen(&a("mod tests { use super::super::b::C; }")), ["a.rs b/c.rs", own]);
    assert_eq!(seen(&a("// use crate::b::B;\nconst T: &str = \"crate::b::B\"; fn f<'a>(c: char) { c == '\"'; }")), [own]);
    assert_eq!(
        seen(&[lib, ("a.rs", "use crate::b::*;"), ("b/mod.rs", "mod c; pub use c::*;"), ("b/c.rs", "use super::C;")]),
        ["a.rs b/mod.rs", "b/c.rs b/mod.rs", "b/mod.rs b/c.rs"]
    );
    assert_eq!(
        seen(&[lib, ("a.rs", ""), ("b/mod.rs", "mod c; fn f() { c::g() } struct S;"), ("b/c.rs", "use super::S; fn g() {}")]),
        ["b/c.rs b/mod.rs", "b/mod.rs b/c.rs"]
    );
    assert_eq!(
        seen(&[
            lib,
            ("a.rs", ""),
            ("b/mod.rs", "mod c; mod d; pub use c::C;"),
            ("b/c.rs", "pub struct C;"),
            ("b/d.rs", "use super::C;")
        ]),
        ["b/d.rs b/c.rs", "b/mod.rs b/c.rs"]
    );
    // A glob imports the items that a macro defines, but not its module's private uses.
    assert_eq!(
        seen(&[
            lib,
            ("a.rs", "use crate::b::D; use crate::b::E;"),
            ("b/mod.rs", "mod c; mod d; mod e; pub use c::*; pub use d::*;"),
            ("b/c.rs", "use super::e::D;"),
            ("b/d.rs", "choices! { pub enum D { A } } pub struct E;"),
            ("b/e.rs", "pub struct D;")
        ]),
        ["a.rs b/d.rs", "b/c.rs b/e.rs", "b/mod.rs b/c.rs", "b/mod.rs b/d.rs"]
    );
}

/// Files stay small enough to be read in one sitting.
#[test]
fn no_file_has_more_than_600_lines() {
    for file in crates().iter().flat_map(|(_, src)| rust_files(src)) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
    }
}
