//! Renders the table as a part of `docs/from-verl.md`.

use super::editions::{self, EDITIONS, VerlKey};
use super::kind::Kind;
use super::row::row;
use super::table::{EVERYWHERE, KeyTreatment, VALUES};
use crate::compose::defaults;
use burnish_hydra::{ConfigError, Node};

/// The maximum line width of a page.
const WIDTH: usize = 120;

/// Returns the number of keys of each edition by treatment, then every row. Settings are in `docs/config.md`.
///
/// # Errors
/// If a built-in file does not compose; tests exclude this.
pub fn page() -> Result<String, ConfigError> {
    let mut page = String::from(
        "| verl's file | edition | keys | settings | renamed | ignored | refused |\n|---|---|---|---|---|---|---|\n",
    );
    let files = Kind::all().flat_map(|kind| kind.verl_files().iter().map(move |file| (kind, *file)));
    for (kind, file) in files {
        let defaults = defaults(kind.default_file())?;
        for (index, edition) in EDITIONS.iter().enumerate() {
            let has = |key: &VerlKey| key.config == file && key.defaults[index].is_some();
            let keys: Vec<VerlKey> = editions::keys().filter(has).collect();
            if !keys.is_empty() {
                page.push_str(&format!(
                    "| `{file}.yaml` | {edition} | {} |{}\n",
                    keys.len(),
                    counts(kind, &keys, defaults.root())
                ));
            }
        }
    }
    for kind in Kind::all() {
        let rows: Vec<_> = kind.rows_of_kind().collect();
        page.push_str(&format!("\n#### {}\n\n{}", kind.title(), list(&rows)));
    }
    let everywhere: Vec<_> = EVERYWHERE.iter().collect();
    page.push_str(&format!("\n#### Everywhere\n\n{}", list(&everywhere)));
    page.push_str("\n#### Values\n\n");
    for (key, values, instead, reason) in VALUES {
        page.push_str(&item(&format!("`{key}`: `{}` becomes `{instead}`: {reason}", values.join("`, `"))));
    }
    Ok(page)
}

fn counts(kind: Kind, keys: &[VerlKey], defaults: &Node) -> String {
    let treatments: Vec<Option<KeyTreatment>> =
        keys.iter().map(|key| row(kind, key.key, defaults).map(|row| row.treatment)).collect();
    let count = |is: fn(&Option<KeyTreatment>) -> bool| treatments.iter().filter(|treatment| is(treatment)).count();
    let columns = [
        count(|treatment| treatment.is_none()),
        count(|treatment| {
            matches!(treatment, Some(KeyTreatment::Renamed(_) | KeyTreatment::Sets(..) | KeyTreatment::SetsFrom(..)))
        }),
        count(|treatment| matches!(treatment, Some(KeyTreatment::Ignored(_)))),
        count(|treatment| matches!(treatment, Some(KeyTreatment::Refused(_)))),
    ];
    columns.iter().map(|count| format!(" {count} |")).collect()
}

/// Lists the rows, grouped by reason, in the order of the first row of each reason.
fn list(rows: &[&(&str, KeyTreatment)]) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = vec![];
    for (pattern, treatment) in rows {
        let reason = match treatment {
            KeyTreatment::Renamed(to) => format!("**renamed** to `{to}`"),
            KeyTreatment::Sets(to, value) => format!("**renamed**: write `true` as `{to}={value}`"),
            KeyTreatment::SetsFrom(to, from) => format!("**renamed**: write `true` as `{to}=…`, with the value of `{from}`"),
            KeyTreatment::Ignored(reason) => format!("**ignored**, because {reason}"),
            KeyTreatment::Unread(reason) => format!("**ignored**, unless a setting, because {reason}"),
            KeyTreatment::Refused(reason) => format!("**refused** unless at its default: {reason}"),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, patterns)) => patterns.push(pattern),
            None => reasons.push((reason, vec![pattern])),
        }
    }
    reasons.into_iter().map(|(reason, patterns)| item(&format!("{reason}: `{}`", patterns.join("`, `")))).collect()
}

/// Returns an item of a Markdown list, wrapped at 120 characters.
pub fn item(text: &str) -> String {
    let mut lines = vec!["-".to_owned()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => *line = format!("{line} {word}"),
            _ => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n") + "\n"
}
