//! Consoles in the documentation contain exactly the program's output.
//!
//! A block marked `console` holds commands and their output. `$ cat FILE` shows a file that the next commands read, and `$
//! trainer …` is run. `scripts/bless` rewrites the output.

use std::path::Path;

use crate::common::trainer;

const PAGES: &[&str] = &["docs/from-verl.md", "docs/from-trl.md", "docs/from-openrlhf.md"];

/// A block with the output that the program prints now.
fn replayed(block: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut shown = String::new();
    let mut lines = block.lines().peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command in `{line}`"));
        let mut output = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            output.push_str(&format!("{line}\n"));
        }
        match command.strip_prefix("cat ") {
            Some(file) => std::fs::write(folder.path().join(file), output.trim_end().to_owned() + "\n").unwrap(),
            None => output = printed(command, folder.path()),
        }
        shown.push_str(&format!("$ {command}\n{}\n\n", output.trim_end()));
    }
    shown.trim_end().to_owned() + "\n"
}

fn printed(command: &str, folder: &Path) -> String {
    let mut words = shlex(command).into_iter();
    assert_eq!(words.next().as_deref(), Some("trainer"), "only trainer is run: {command}");
    let words: Vec<String> = words.collect();
    let output = trainer(&words.iter().map(String::as_str).collect::<Vec<_>>()).current_dir(folder).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Splits at spaces; single and double quotes hold words together.
fn shlex(command: &str) -> Vec<String> {
    let (mut words, mut open) = (vec![String::new()], None);
    for c in command.chars() {
        match (c, open) {
            ('\'' | '"', None) => open = Some(c),
            (c, Some(quote)) if c == quote => open = None,
            (' ', None) => words.push(String::new()),
            (c, _) => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn pages_show_what_the_program_prints() {
    for page in PAGES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut parts = text.split("```console\n");
        let mut now = parts.next().unwrap().to_owned();
        let mut blocks = 0;
        for part in parts {
            let (block, rest) = part.split_once("```").unwrap();
            now.push_str(&format!("```console\n{}```{rest}", replayed(block)));
            blocks += 1;
        }
        assert!(blocks > 0, "{page} shows no console");
        if std::env::var_os("BURNISH_BLESS").is_some() {
            std::fs::write(&path, &now).unwrap();
        } else {
            assert!(now == text, "{page} is out of date: run scripts/bless");
        }
    }
}
