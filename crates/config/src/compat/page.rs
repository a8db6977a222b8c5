//! Renders the table as a part of `docs/from-verl.md`.

use super::editions::{self, EDITIONS, Key};
use super::kind::Kind;
use super::row::row;
use super::table::{EVERYWHERE, Fate, VALUES};
use crate::compose::defaults;
use burnish_hydra::{ConfigError, Node};

/// Returns the numbers of keys of each edition by treatment, then every row. Settings are in `docs/config.md`.
///
/// # Errors
/// If a built-in file does not compose, which its tests exclude.
pub fn page() -> Result<String, ConfigError> {
    let mut page = String::from(
        "| verl's file | edition | keys | settings | renamed | ignored | refused |\n|---|---|---|---|---|---|---|\n",
    );
    let files = Kind::all().flat_map(|kind| kind.verl_files().iter().map(move |file| (kind, *file)));
    for (kind, file) in files {
        let defaults = defaults(kind.default_file())?;
        for (index, edition) in EDITIONS.iter().enumerate() {
            let has = |key: &Key| key.config == file && key.defaults[index].is_some();
            let keys: Vec<Key> = editions::keys().filter(has).collect();
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
        let rows: Vec<_> = kind.own_rows().collect();
        page.push_str(&format!("\n#### {}\n\n{}", kind.title(), list(&rows)));
    }
    let everywhere: Vec<_> = EVERYWHERE.iter().collect();
    page.push_str(&format!("\n#### Everywhere\n\n{}", list(&everywhere)));
    page.push_str("\n#### Values\n\n");
    for (key, values, instead, reason) in VALUES {
        page.push_str(&format!("- `{key}`: instead of `{}` there is `{instead}`: {reason}\n", values.join("`, `")));
    }
    Ok(page)
}

fn counts(kind: Kind, keys: &[Key], defaults: &Node) -> String {
    let fates: Vec<Option<Fate>> = keys.iter().map(|key| row(kind, key.key, defaults).map(|row| row.fate)).collect();
    let count = |is: fn(&Option<Fate>) -> bool| fates.iter().filter(|fate| is(fate)).count();
    let columns = [
        count(|fate| fate.is_none()),
        count(|fate| matches!(fate, Some(Fate::Renamed(_) | Fate::Means(..) | Fate::Chooses(..)))),
        count(|fate| matches!(fate, Some(Fate::Ignored(_)))),
        count(|fate| matches!(fate, Some(Fate::Refused(_)))),
    ];
    columns.iter().map(|count| format!(" {count} |")).collect()
}

/// Lists the rows, grouped by reason, in the order in which the reasons first appear.
fn list(rows: &[&(&str, Fate)]) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = vec![];
    for (pattern, fate) in rows {
        let reason = match fate {
            Fate::Renamed(to) => format!("**renamed** to `{to}`"),
            Fate::Means(to, value) => format!("**renamed**: `true` is written `{to}={value}`"),
            Fate::Chooses(to, from) => format!("**renamed**: `true` is written `{to}=…`, with the value of `{from}`"),
            Fate::Ignored(reason) => format!("**ignored**, because {reason}"),
            Fate::Unread(reason) => format!("**ignored**, unless a setting, because {reason}"),
            Fate::Refused(reason) => format!("**refused** unless at its default: {reason}"),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, patterns)) => patterns.push(pattern),
            None => reasons.push((reason, vec![pattern])),
        }
    }
    reasons.into_iter().map(|(reason, patterns)| format!("- {reason}: `{}`\n", patterns.join("`, `"))).collect()
}
