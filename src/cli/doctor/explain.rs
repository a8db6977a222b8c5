//! `trainer doctor --explain`: the page of a check, from the program itself.

use super::super::error::CliError;
use burnish_config::compat::page::item;
use burnish_doctor::{CHECKS, Check};
use burnish_util::suggest::did_you_mean;

/// Returns the checks of these names, as `trainer doctor` prints them or with hyphens.
///
/// # Errors
/// If a check is unknown; the message lists all.
pub(super) fn named(names: &[String]) -> Result<Vec<&'static Check>, CliError> {
    let find = |name: &String| {
        let id = name.trim_start_matches("docs/checks/").trim_end_matches(".md").to_lowercase().replace(' ', "-");
        CHECKS.iter().copied().find(|check| check.id() == id).ok_or_else(|| unknown(name, &id))
    };
    names.iter().map(find).collect()
}

fn unknown(name: &str, id: &str) -> CliError {
    let ids: Vec<String> = CHECKS.iter().map(|check| check.id()).collect();
    let hint = did_you_mean(id, ids.iter().map(String::as_str));
    CliError::Setup(format!("no check has the name `{name}`.{hint} The checks: {}", ids.join(", ")))
}

/// Returns the pages of checks, with the items of lists wrapped.
pub(super) fn pages(checks: &[&Check]) -> String {
    let wrapped = |line: &str| line.strip_prefix("- ").map_or_else(|| format!("{line}\n"), item);
    let page = |check: &&Check| check.page().lines().map(wrapped).collect::<String>();
    checks.iter().map(page).collect::<Vec<_>>().join("\n")
}

/// Returns the command that prints the pages of checks.
pub(super) fn command(checks: &[&Check]) -> String {
    let ids: Vec<String> = checks.iter().map(|check| check.id()).collect();
    format!("trainer doctor --explain {}", ids.join(" "))
}
