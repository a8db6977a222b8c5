//! The blocks of docs/extending.md are files that the unit tests compile and run.

use std::path::{Path, PathBuf};

use regex::Regex;

use crate::docs::{check, root};

const PAGE: &str = "docs/extending.md";

/// Returns the part of an example that the page shows: the file up to its tests.
fn shown(file: &str) -> String {
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{PAGE} shows {file}: {error}"));
    let (text, tests) = text.split_once("\n#[cfg(test)]\n").unwrap_or_else(|| panic!("{file} has no tests"));
    assert!(tests.contains("#[test]"), "{file} has no tests");
    text.trim_end().to_owned()
}

/// Every `example.rs` of the crates, which one line of the module above it compiles.
fn examples(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            examples(&path, found);
        } else if path.ends_with("example.rs") {
            found.push(path);
        }
    }
}

#[test]
fn generated_pages_show_examples_that_compile() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let block = Regex::new(r"(?s)```rust\n// (\S+)\n.*?```").unwrap();
    let all_blocks = page.matches("```rust\n").count();
    let files: Vec<String> = block.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    assert_eq!(files.len(), all_blocks, "a Rust block of {PAGE} begins with `// ` and the file that it is");
    let fresh =
        block.replace_all(&page, |found: &regex::Captures| format!("```rust\n// {}\n{}\n```", &found[1], shown(&found[1])));
    check(PAGE, &fresh);

    let mut compiled = Vec::new();
    for name in std::fs::read_dir(root().join("crates")).unwrap() {
        examples(&name.unwrap().path().join("src"), &mut compiled);
    }
    for path in &compiled {
        let above = ["mod.rs", "lib.rs"].map(|name| path.with_file_name(name)).into_iter().find(|file| file.exists()).unwrap();
        let module = std::fs::read_to_string(&above).unwrap();
        assert!(module.contains("\n#[cfg(test)]\nmod example;\n"), "{} does not compile its example.rs", above.display());
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        assert!(files.iter().any(|file| file == name), "{PAGE} does not show {name}");
    }
    assert_eq!(files.len(), compiled.len());
}
