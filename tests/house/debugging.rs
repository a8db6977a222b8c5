//! The pages of the checks of `trainer doctor` in docs/checks/, and their index at the end of docs/debugging.md.

use std::collections::BTreeSet;

use burnish::doctor::{CHECKS, Check};

use crate::docs::{check, root};

const MARK: &str = "writes what follows. -->\n\n";

fn file(one: &Check) -> String {
    format!("docs/checks/{}.md", one.id())
}

fn index() -> String {
    let mut table = String::from("| Check | When | Meaning of a warning or a failure |\n|---|---|---|\n");
    for one in CHECKS {
        table.push_str(&format!("| [{}](checks/{}.md) | {} | {} |\n", one.name, one.id(), one.when(), one.meaning));
    }
    table
}

#[test]
fn generated_page_of_debugging_is_up_to_date() {
    let written = std::fs::read_to_string(root().join("docs/debugging.md")).unwrap();
    let (head, _) = written.split_once(MARK).unwrap();
    check("docs/debugging.md", &format!("{head}{MARK}{}", index()));
}

#[test]
fn generated_page_of_each_check_is_up_to_date() {
    let pages: BTreeSet<String> = CHECKS.iter().map(|one| file(one)).collect();
    let there = root().join("docs/checks").read_dir().into_iter().flatten();
    for old in there.map(|entry| format!("docs/checks/{}", entry.unwrap().file_name().display())) {
        let is_blessed = std::env::var_os("BURNISH_BLESS").is_some();
        match (pages.contains(&old), is_blessed) {
            (true, _) => {}
            (false, true) => std::fs::remove_file(root().join(&old)).unwrap(),
            (false, false) => panic!("{old} is the page of no check: run scripts/bless"),
        }
    }
    if std::env::var_os("BURNISH_BLESS").is_some() {
        std::fs::create_dir_all(root().join("docs/checks")).unwrap();
    }
    CHECKS.iter().for_each(|one| check(&file(one), &one.page()));
}
