//! The commands of the pages are run, and consoles contain exactly the program's output.
//!
//! The blocks of a page are one session in one folder. The mark of a block, the words behind its fence, is a row of
//! [`session::MARKS`]. `scripts/bless` rewrites the output of `console`. `tests/house/commands.rs` checks the commands that do not run.

mod session;

use std::path::{Path, PathBuf};

use session::Session;

/// The folders of the pages.
const PAGES: &[&str] = &["docs", "skills"];

/// Adds a page, or the pages of a folder.
fn pages(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut below: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        below.sort();
        below.iter().for_each(|path| pages(path, found));
    } else if path.extension().is_some_and(|extension| extension == "md") {
        found.push(path.to_owned());
    }
}

/// Plays the blocks of a page. Returns the page with the output of this program in its consoles.
fn played(page: &str, text: &str) -> String {
    let session = Session::new(page);
    let (mut now, mut lines) = (String::new(), text.split_inclusive('\n'));
    while let Some(line) = lines.next() {
        now.push_str(line);
        let Some(mark) = line.trim_start().strip_prefix("```") else { continue };
        let (mut body, mut end) = (String::new(), "");
        for line in lines.by_ref() {
            if line.trim_start().starts_with("```") {
                end = line;
                break;
            }
            body.push_str(line);
        }
        now.push_str(&session.play(mark.trim(), &body));
        now.push_str(end);
    }
    now
}

#[test]
fn pages_show_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![];
    PAGES.iter().for_each(|folder| pages(&root.join(folder), &mut found));
    for path in found {
        let page = path.strip_prefix(root).unwrap().display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let now = played(&page, &text);
        if std::env::var_os("BURNISH_BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else {
            assert!(now == text, "{page} is out of date: run scripts/bless");
        }
    }
}
