//! Dependencies point in one direction: between the folders of `src/`, and between its files.

mod crate_files;
mod faces;
mod scan;

use crate_files::{CrateFiles, Use, circles, rust_files};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the files of a folder may use.
enum May {
    /// These folders, and their own.
    Use(&'static [&'static str]),
    /// Every folder but these.
    UseAllBut(&'static [&'static str]),
}
use May::{Use as Only, UseAllBut as AllBut};

/// Every folder of `src/`, from the ground up.
const RULES: &[(&str, May)] = &[
    ("util", Only(&[])),
    ("algorithm", Only(&["util"])),
    ("hydra", Only(&["util"])),
    ("hub", Only(&["util"])),
    ("config", Only(&["hydra", "util"])),
    ("data", Only(&["util"])),
    ("model", Only(&["util"])),
    ("distributed", Only(&["util"])),
    ("optim", Only(&["distributed", "model", "util"])),
    ("rollout", Only(&["model", "util"])),
    ("python", Only(&["util"])),
    ("reward", Only(&["model", "data", "python", "util"])),
    ("agent", Only(&["data", "python", "reward", "rollout", "util"])),
    ("tracking", Only(&["util"])),
    ("checkpoint", Only(&["config", "util"])),
    ("run", Only(&["tracking", "util"])),
    ("server", Only(&["util"])),
    ("report", Only(&["run", "checkpoint", "server", "util"])),
    ("job", AllBut(&["trainer", "pipelines", "cli"])),
    ("trainer", AllBut(&["pipelines", "cli"])),
    ("pipelines", AllBut(&["trainer", "cli"])),
    ("cli", AllBut(&[])),
];

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The folder of `src/` that a file lies in; `None` for `lib.rs`.
fn folder(file: &str) -> Option<&str> {
    file.split_once('/').map(|(folder, _)| folder)
}

#[test]
fn every_folder_has_a_rule() {
    let entries = std::fs::read_dir(src()).unwrap().map(|entry| entry.unwrap());
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
    for Use { from, path, .. } in CrateFiles::read(&src()).uses() {
        let Some(own) = folder(&from) else { continue };
        let (_, may) = RULES.iter().find(|(name, _)| *name == own).unwrap();
        let is_folder = |name: &&String| RULES.iter().any(|(known, _)| known == name);
        let Some(used) = path.first().filter(is_folder) else { continue };
        let allowed = match may {
            Only(folders) => used == own || folders.contains(&used.as_str()),
            AllBut(folders) => !folders.contains(&used.as_str()),
        };
        if !allowed {
            wrong.push(format!("{from}: {own} may not use {}", path.join("::")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn folders_do_not_use_each_other_in_a_circle() {
    let arrows = CrateFiles::read(&src()).uses().into_iter().filter_map(|Use { from, path, .. }| {
        let (from, to) = (folder(&from)?.to_owned(), path.first()?.clone());
        (from != to).then_some((from, to))
    });
    assert_eq!(circles(&arrows.collect()), Vec::<BTreeSet<String>>::new());
}

#[test]
fn files_do_not_use_each_other_in_a_circle() {
    let uses = CrateFiles::read(&src()).uses();
    let arrows: BTreeSet<(String, String)> = uses.iter().map(|one| (one.from.clone(), one.to.clone())).collect();
    let mut found = vec![];
    for circle in circles(&arrows) {
        found.push("\nthese files use each other:".to_owned());
        for (from, to) in arrows.iter().filter(|(from, to)| circle.contains(from) && circle.contains(to)) {
            let between = uses.iter().filter(|one| one.from == *from && one.to == *to);
            let names: BTreeSet<&str> = between.filter_map(|one| one.path.last().map(String::as_str)).collect();
            found.push(format!("  {from} uses {to}: {}", names.into_iter().collect::<Vec<_>>().join(", ")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The scan sees what it must: trees of `use`, `super`, `self`, paths in bodies, children without a `use`, re-exports and globs.
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
    // A glob brings what a macro defines, and not what its module uses in private.
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
    for file in rust_files(&src()) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
    }
}
