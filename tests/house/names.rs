//! The pages for contributors name types, fields, tables and files that exist in the code.

use std::path::Path;

use regex::Regex;

use crate::docs::root;

const PAGES: [&str; 3] = ["docs/extending.md", "docs/tour.md", "CONTRIBUTING.md"];

/// Adds the files of a folder with their texts, by their paths from the root.
fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("golden") {
            files(&path, found);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            found.push((path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), text));
        }
    }
}

/// The code, and the pages without their blocks of code.
struct Texts {
    code: Vec<(String, String)>,
    pages: Vec<(&'static str, String)>,
}

fn texts() -> Texts {
    let mut code = Vec::new();
    for folder in ["crates", "src", "tests", "config", "scripts", "recipes", "launch", "examples", "benches"] {
        files(&root().join(folder), &mut code);
    }
    let page = |name: &'static str| {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        let parts = text.split("```").enumerate().filter(|(i, _)| i % 2 == 0).map(|(_, part)| part);
        (name, parts.collect::<Vec<_>>().join("").replace('\n', " "))
    };
    Texts { code, pages: PAGES.map(page).into() }
}

/// The fields of each struct of this name.
fn structs(code: &[(String, String)], name: &str) -> Vec<Vec<String>> {
    let definition = Regex::new(&format!(r"(?ms)^ *(?:pub(?:\([^)]*\))? )?struct {name}\b[^{{;(]*\{{(.*?)^ *\}}")).unwrap();
    let field = Regex::new(r"(?m)^\s+(?:pub(?:\([^)]*\))? )?([a-z_][a-z_0-9]*): ").unwrap();
    let fields = |body: &str| field.captures_iter(body).map(|found| found[1].to_owned()).collect();
    code.iter().flat_map(|(_, text)| definition.captures_iter(text)).map(|found| fields(&found[1])).collect()
}

/// `Type { a, b }` names every field of a struct; `Type { a, … }` names some.
#[test]
fn fields_that_pages_name_exist() {
    let Texts { code, pages } = texts();
    let literal = Regex::new(r"`([A-Z]\w+) \{ ([^}`]+) \}`").unwrap();
    let mut count = 0;
    for (page, text) in &pages {
        for found in literal.captures_iter(text) {
            let named: Vec<&str> = found[2].split(", ").map(|field| field.split(':').next().unwrap()).collect();
            let (some, named): (Vec<&str>, Vec<&str>) = named.into_iter().partition(|field| *field == "…");
            let known = structs(&code, &found[1]);
            let fits = |fields: &Vec<String>| {
                named.iter().all(|name| fields.iter().any(|field| field == name))
                    && (!some.is_empty() || fields.len() == named.len())
            };
            assert!(known.iter().any(fits), "{page}: `{}`, but the fields are {known:?}", &found[0]);
            count += 1;
        }
    }
    assert!(count > 9, "the pages name no structs in the form that is looked for");
}

/// `NAME` of `PATH` is a name in that file.
#[test]
fn items_that_pages_place_are_there() {
    let Texts { code, pages } = texts();
    let placed =
        Regex::new(r"`([A-Za-z_]\w*)`(?: \([^)]*\))? (?:of|in)\s+`((?:crates|src|tests|scripts)/[\w/.-]+\.\w+)`").unwrap();
    let mut count = 0;
    for (page, text) in &pages {
        for found in placed.captures_iter(text) {
            let Some((_, text)) = code.iter().find(|(path, _)| *path == found[2]) else {
                panic!("{page}: there is no {}", &found[2]);
            };
            let defined = Regex::new(&format!(
                r"\b(?:struct|enum|trait|fn|const|static|type|mod)(?: mut)? {0}\b|^\s*{0}\b|impl .*\b{0}\b|\b{0} (?:=|:|\()",
                &found[1]
            ));
            assert!(defined.unwrap().is_match(text), "{page}: {} does not define {}", &found[2], &found[1]);
            count += 1;
        }
    }
    assert!(count > 20, "the pages place no names in the form that is looked for");
}

/// A path in backticks is a file or a folder; a file name without its folder is the end of a path.
#[test]
fn files_that_pages_name_exist() {
    let Texts { code, pages } = texts();
    let path = Regex::new(r"`([\w-]+(?:/[\w.-]+)*/?)`").unwrap();
    let bare = Regex::new(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*\.rs)`").unwrap();
    let tops = ["crates/", "src/", "tests/", "config/", "scripts/", "recipes/", "launch/", "examples/", "benches/", "docs/"];
    for (page, text) in &pages {
        for found in path.captures_iter(text).map(|found| found[1].to_owned()) {
            let is_pattern = ["NAME", "PART"].iter().any(|word| found.contains(word));
            if !is_pattern && tops.iter().any(|top| found.starts_with(top)) {
                assert!(root().join(&found).exists(), "{page}: there is no {found}");
            }
        }
        for found in bare.captures_iter(text).map(|found| found[1].to_owned()) {
            let end = format!("/{found}");
            assert!(code.iter().any(|(path, _)| path.ends_with(&end) || *path == found), "{page}: there is no {found}");
        }
    }
}
