//! The commands of the pages are run, and consoles contain exactly the program's output.
//!
//! The blocks of a page are one session in one folder. The mark of a block, the words behind its fence, is a row of
//! [`session::MARKS`]. `scripts/bless` rewrites the output of `console`.

mod session;

use std::path::{Path, PathBuf};

use crate::common::trainer;
use session::Session;

/// Pages and folders of pages, with the marks that are played: all, and then every block has a mark, or some.
const PAGES: &[(&str, &[&str])] = &[
    ("docs/index.md", ALL),
    ("docs/tutorials", ALL),
    ("skills", ALL),
    ("docs/from-verl.md", &["console"]),
    ("docs/from-trl.md", &["console"]),
    ("docs/from-openrlhf.md", &["console"]),
];
const ALL: &[&str] = &[];

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
fn played(page: &str, text: &str, marks: &[&str]) -> String {
    let session = Session::new(page);
    let (mut now, mut lines) = (String::new(), text.split_inclusive('\n'));
    while let Some(line) = lines.next() {
        now.push_str(line);
        let Some(mark) = line.strip_prefix("```") else { continue };
        let body: String = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        let mark = mark.trim();
        now.push_str(&if marks.is_empty() || marks.contains(&mark) { session.play(mark, &body) } else { body });
        now.push_str("```\n");
    }
    now
}

#[test]
fn pages_show_what_the_program_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (place, marks) in PAGES {
        let mut found = vec![];
        pages(&root.join(place), &mut found);
        assert!(!found.is_empty(), "page {place} is missing");
        for path in found {
            let page = path.strip_prefix(root).unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let now = played(&page, &text, marks);
            if std::env::var_os("BURNISH_BLESS").is_some() {
                std::fs::write(&path, &now).unwrap();
            } else {
                assert!(now == text, "{page} is out of date: run scripts/bless");
            }
        }
    }
}

/// The commands of `trainer` in a page: in blocks, with or without a prompt, on one line each.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(|line| line.trim_start_matches([' ', '$']));
    let ours = lines.filter(|line| line.starts_with("trainer ") && !line.contains(['…', '`']));
    // The command ends before a comment, a pipe, another command, or the words of a converted script.
    let ends = ["  #", " | ", " > ", " &", " -- ", " 2>"];
    ours.map(|line| ends.iter().fold(line, |line, end| line.split(end).next().unwrap()).trim().to_owned()).collect()
}

/// No page names a command or an option that the program does not have. Keys are checked by `keys_that_pages_name_exist`.
#[test]
fn commands_of_all_pages_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = ["README.md", "data/README.md"].map(|page| root.join(page)).to_vec();
    pages(&root.join("docs"), &mut found);
    pages(&root.join("skills"), &mut found);
    let (mut count, mut wrong) = (0, vec![]);
    for page in found {
        for command in commands(&std::fs::read_to_string(&page).unwrap()) {
            let words = session::words(&command);
            let is_option = |word: &&String| !word.contains('=') || word.starts_with("--");
            // `--help` is answered after the words before it are understood.
            let mut words: Vec<&str> = words[1..].iter().filter(is_option).map(String::as_str).collect();
            words.push("--help");
            let output = trainer(&words).output().unwrap();
            if !output.status.success() {
                wrong.push(format!("{}: {command}\n{}", page.display(), String::from_utf8_lossy(&output.stderr)));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty() && count > 100, "{} of {count} commands:\n{}", wrong.len(), wrong.join("\n"));
}
