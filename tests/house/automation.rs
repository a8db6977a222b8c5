//! The end of docs/automation.md, rendered from the tables of exit codes and listings.

use burnish::cli::{EXIT_CODES, LISTINGS, Listing, NOT_LISTING};

use crate::docs::{check, root};

fn tables() -> String {
    let codes: String = EXIT_CODES.iter().map(|(code, meaning)| format!("| {code} | {meaning} |\n")).collect();
    let keys = |listing: &Listing| listing.keys().iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let listings = LISTINGS
        .iter()
        .map(|listing| format!("- `trainer {} --json`; a row is {}: {}\n", listing.command, listing.row, keys(listing)));
    let listings: String = listings.collect();
    let others: String = NOT_LISTING.iter().map(|(command, instead)| row(command, instead)).collect();
    format!(
        "## All exit codes\n\n| Code | Meaning |\n|---|---|\n{codes}\n## All listings\n\n{listings}\n## All other commands\n\n\
         | Command | What a program reads |\n|---|---|\n{others}"
    )
}

fn row(command: &str, instead: &str) -> String {
    format!("| `{}` | {instead} |\n", format!("trainer {command}").trim_end())
}

#[test]
fn generated_page_of_automation_is_up_to_date() {
    let written = std::fs::read_to_string(root().join("docs/automation.md")).unwrap();
    let (head, _) = written.split_once("writes what follows. -->\n\n").unwrap();
    check("docs/automation.md", &format!("{head}writes what follows. -->\n\n{}", tables()));
}
