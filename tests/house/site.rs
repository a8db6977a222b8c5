//! The site: its contents list every page, links lead to headings that exist, and `llms.txt` is the contents for programs.
//!
//! `scripts/bless` rewrites `docs/llms.txt`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::docs::{pages, root};

const CONTENTS: &str = "docs/SUMMARY.md";

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The lines of a page outside of its blocks.
fn lines(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let is_text = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    text.lines().filter(is_text).collect()
}

/// The parts of the contents, each with its pages: title and file.
fn contents() -> Vec<(String, Vec<(String, String)>)> {
    let link = Regex::new(r"\[([^\]]+)\]\(([^)]+)\)").unwrap();
    let mut parts = vec![(String::new(), vec![])];
    for line in text(&root().join(CONTENTS)).lines() {
        match (line.strip_prefix("# ").filter(|title| *title != "Summary"), link.captures(line)) {
            (Some(title), _) => parts.push((title.to_owned(), vec![])),
            (None, Some(found)) => parts.last_mut().unwrap().1.push((found[1].to_owned(), found[2].to_owned())),
            _ => {}
        }
    }
    parts.retain(|(_, pages)| !pages.is_empty());
    parts
}

#[test]
fn contents_list_every_page_once() {
    let docs = root().join("docs");
    let mut found = vec![];
    pages(&docs, &mut found);
    let name = |path: &PathBuf| path.strip_prefix(&docs).unwrap().display().to_string();
    let there: BTreeSet<String> = found.iter().map(name).filter(|page| page != "SUMMARY.md").collect();
    let listed: Vec<String> = contents().into_iter().flat_map(|(_, pages)| pages).map(|(_, page)| page).collect();
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(once, there, "{CONTENTS} and the pages in docs/ differ");
    assert_eq!(listed.len(), once.len(), "{CONTENTS} lists a page twice");
}

/// The anchors of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let headings = lines(text).into_iter().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let words = link.replace_all(line.trim_start_matches('#').trim(), "$1").to_lowercase();
        let anchor: String = words.replace(' ', "-").chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
        let before = seen.entry(anchor.clone()).or_default();
        *before += 1;
        if *before > 1 { format!("{anchor}-{}", *before - 1) } else { anchor }
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_to_headings() {
    let mut files = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md"].map(|name| root().join(name)).to_vec();
    ["docs", "scripts", "launch", "skills"].iter().for_each(|folder| pages(&root().join(folder), &mut files));
    let link = Regex::new(r"\]\(([^)#:]*)#([^)]+)\)").unwrap();
    let (mut count, mut wrong) = (0, vec![]);
    for file in files {
        for found in link.captures_iter(&lines(&text(&file)).join("\n")) {
            let target = if found[1].is_empty() { file.clone() } else { file.parent().unwrap().join(&found[1]) };
            if !anchors(&text(&target)).contains(&found[2]) {
                wrong.push(format!("{}: {} has no heading #{}", file.display(), target.display(), &found[2]));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty() && count > 100, "{} of {count} links:\n{}", wrong.len(), wrong.join("\n"));
}

/// The first sentence of a page, without its links.
fn summary(page: &str) -> String {
    let [link, end] = [r"\[([^\]]*)\]\([^)]*\)", r"[.:]( [A-Z`]|$)"].map(|pattern| Regex::new(pattern).unwrap());
    let text = lines(page).join("\n");
    let is_text = |paragraph: &&str| paragraph.starts_with(|c: char| c.is_alphanumeric() || "[`*".contains(c));
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.trim_start_matches('\n'));
    let paragraph = paragraphs.filter(is_text).map(|found| found.replace('\n', " ")).next().unwrap_or_default();
    let words = link.replace_all(&paragraph, "$1").replace("**", "");
    let end = end.find(words.trim_end()).map_or(words.len(), |found| found.start());
    words[..end].to_owned() + "."
}

#[test]
fn generated_page_for_programs_lists_the_site() {
    let docs = root().join("docs");
    let mut listed = String::from("# burnish\n");
    for (part, pages) in contents() {
        if part.is_empty() {
            listed.push_str(&format!("\n> {}\n", summary(&text(&docs.join(&pages[0].1)))));
            continue;
        }
        listed.push_str(&format!("\n## {part}\n\n"));
        for (title, page) in pages {
            let address = page.replace(".md", ".html");
            listed.push_str(&format!("- [{title}]({address}): {}\n", summary(&text(&docs.join(page)))));
        }
    }
    let path = docs.join("llms.txt");
    if std::env::var_os("BURNISH_BLESS").is_some() {
        std::fs::write(&path, &listed).unwrap();
    }
    assert!(text(&path) == listed, "docs/llms.txt is out of date: run scripts/bless");
}

/// A row of the overview of benchmarks quotes a page: its bold numbers are on that page.
#[test]
fn numbers_of_the_overview_are_on_their_pages() {
    let folder = root().join("docs/benchmarks");
    let [number, link] = [r"\*\*([^*]+)\*\*", r"\]\(([a-z-]+\.md)\)"].map(|pattern| Regex::new(pattern).unwrap());
    let (overview, mut count) = (text(&folder.join("index.md")), 0);
    for row in overview.lines() {
        let Some(page) = link.captures(row).map(|found| text(&folder.join(&found[1]))) else { continue };
        for found in number.captures_iter(row) {
            assert!(page.contains(&found[1]), "docs/benchmarks/index.md: {} is not on the page of its row: {row}", &found[1]);
            count += 1;
        }
    }
    assert!(count > 9, "the overview quotes {count} numbers in the form that is looked for");
}
