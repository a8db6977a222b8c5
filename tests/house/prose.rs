//! The language of comments, messages and pages: phrases that readers must read twice do not come back.
//!
//! `prose/phrases.tsv` lists the phrases, each as a pattern with its replacement, and `prose/cases.tsv` texts with their number of
//! faults. CONTRIBUTING.md states the rules.

mod texts;

use crate::docs::root;
use fancy_regex::Regex;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use texts::{Kind, Text, of_file};

/// The folders and files whose text is checked.
const CHECKED: &[&str] = &[
    "benches",
    "config",
    "crates",
    "docs",
    "examples",
    "launch",
    "recipes",
    "scripts",
    "skills",
    "src",
    "tests",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
];
/// Folders with foreign or recorded text, and the tables of phrases and cases.
const QUOTED: &[&str] = &["config/verl", "crates/config/src/compat/verl", "tests/data", "tests/golden", "tests/house/prose"];
/// The longest line of a page, and the longest cell of a table, in characters.
const LONGEST: usize = 120;
/// Pages that a test generates: their lines are as long as the comments of the configuration files.
const GENERATED: &[&str] = &["docs/algorithms.md", "docs/config.md"];

/// The worn phrases, each with what to write instead.
static PHRASES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let lines = include_str!("prose/phrases.tsv").lines().skip(1);
    let pair = |line: &'static str| line.split_once('\t').expect("a pattern, a tab, and what to write instead");
    lines.map(pair).map(|(pattern, instead)| (Regex::new(&format!("(?i){pattern}")).unwrap(), instead)).collect()
});
/// Words with which no comment begins.
static BEGINNING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(What|How|Whether|Those of|That of|Of|As|Where|Which)\b").unwrap());

/// Every file to check, relative to the repository.
fn files() -> Vec<PathBuf> {
    fn walk(path: &Path, found: &mut Vec<PathBuf>) {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            entries.for_each(|entry| walk(&entry.unwrap().path(), found));
        } else {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
    let mut found = vec![];
    CHECKED.iter().for_each(|name| walk(&root().join(name), &mut found));
    found.retain(|file| !QUOTED.iter().any(|quoted| file.starts_with(quoted)));
    found.sort();
    found
}

/// The faults of a text: worn phrases, and a beginning that readers must read twice.
fn faults(text: &Text) -> Vec<String> {
    let worn = PHRASES.iter().filter_map(|(phrase, instead)| {
        let found = phrase.find(&text.words).unwrap()?;
        Some(format!("`{}`: write {instead}", found.as_str()))
    });
    let begins = (text.kind == Kind::Doc).then(|| BEGINNING.find(&text.words).unwrap()).flatten();
    let begins = begins.map(|found| format!("begins with `{}`: begin with the noun or the verb", found.as_str()));
    worn.chain(begins).collect()
}

#[test]
fn texts_are_plain() {
    let mut wrong = vec![];
    for file in files() {
        let Some(texts) = of_file(&file, &root().join(&file)) else { continue };
        for text in texts {
            wrong.extend(faults(&text).into_iter().map(|fault| format!("{}:{}: {fault}", file.display(), text.line)));
        }
    }
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn pages_have_short_lines_and_cells() {
    let mut wrong = vec![];
    let pages = files().into_iter().filter(|file| file.extension().is_some_and(|e| e == "md"));
    for file in pages.filter(|file| !GENERATED.iter().any(|page| file.starts_with(page))) {
        let mut is_code = false;
        for (index, line) in std::fs::read_to_string(root().join(&file)).unwrap().lines().enumerate() {
            // Blocks show commands and the output of programs.
            is_code ^= line.trim_start().starts_with("```");
            let parts: Vec<&str> = if line.starts_with('|') { line.split('|').collect() } else { vec![line] };
            // A command or an address cannot be wrapped.
            let is_text = !is_code && !line.starts_with("    ") && !line.contains("http");
            if is_text && parts.iter().any(|part| part.trim().chars().count() > LONGEST) {
                wrong.push(format!("{}:{}: longer than {LONGEST} characters", file.display(), index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn worn_phrases_are_found() {
    for line in include_str!("prose/cases.tsv").lines().skip(1) {
        let (words, count) = line.split_once('\t').unwrap();
        let text = Text::new(1, Kind::Doc, words);
        assert_eq!(faults(&text).len(), count.parse::<usize>().unwrap(), "{words}: {:?}", faults(&text));
    }
}
