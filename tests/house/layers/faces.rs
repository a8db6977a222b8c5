//! A `mod.rs` is the face of its folder: documentation, a registry and re-exports. Types and code are in files next to it, so
//! that the other files of the folder can use them without an arrow upwards.

use super::scan::scan;
use super::{crates, rust_files};
use std::path::Path;

/// Each `mod.rs` that is allowed to define more, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "burnish/trainer/mod.rs",
    "a step of reinforcement learning is what the folder is about, and reads from top to bottom there",
)];

/// Returns the items that a `mod.rs` with this text defines besides its registry: a table, and the functions that look into it.
fn found_in(text: &str) -> Vec<String> {
    let defines = scan(text).defines;
    let has_table = defines.iter().any(|one| one.within.is_empty() && one.keyword == "static");
    let is_allowed = |keyword: &str| keyword == "static" || keyword == "fn" && has_table;
    let others = defines.iter().filter(|one| one.within.is_empty() && !is_allowed(&one.keyword));
    others.map(|one| format!("{} {}", one.keyword, one.name)).collect()
}

#[test]
fn a_mod_rs_is_documentation_registry_and_re_exports() {
    let mut wrong = vec![];
    let files = crates().into_iter().flat_map(|(crate_name, src)| {
        let faces = rust_files(&src).into_iter().filter(|file| file.ends_with("mod.rs"));
        let name = move |file: &Path| format!("{crate_name}/{}", file.strip_prefix(&src).unwrap().display());
        faces.map(|file| (name(&file), file)).collect::<Vec<_>>()
    });
    for (name, file) in files {
        let found = found_in(&std::fs::read_to_string(&file).unwrap());
        match EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
            true if found.is_empty() => wrong.push(format!("{name} is an exception without need")),
            false if !found.is_empty() => {
                wrong.push(format!("{name} defines {}: move it to a file next to it", found.join(", ")))
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn definitions_are_seen() {
    let registry =
        "mod a; pub use a::A; pub static ALL: &[A] = &[a::ENTRY]; pub fn find() -> impl Iterator<Item = A> { struct B; }";
    let cases = [
        ("//! Text.\nmod a;\npub use a::{A, B};\n#[cfg(test)]\nmod tests { struct C; impl C { fn f() {} } }", vec![]),
        (registry, vec![]),
        ("mod a; pub fn find() {}", vec!["fn find"]),
        ("mod a;\nuse a::A;\nimpl A { fn f() {} }\nimpl Clone for A {}", vec!["impl A", "impl Clone"]),
        ("#[derive(Debug)] pub struct A; pub enum B { C } const D: u8 = 0;", vec!["struct A", "enum B", "const D"]),
        ("choices! { pub enum A { B } }", vec!["enum A"]),
    ];
    for (text, expected) in cases {
        assert_eq!(found_in(text), expected, "{text}");
    }
}
