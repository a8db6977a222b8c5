//! Composes files without the settings, checks and renames of this program.

use super::library::LIBRARY;
use super::saved::remember_secrets;
use super::schema::{PpoConfig, Schema};
use super::tree::Tree;
use burnish_hydra::{ConfigError, Plain, Problem, Request, compose, interpolation};

/// Returns the built-in configuration with this name, with unresolved `${…}`.
///
/// # Errors
/// If the built-in files do not compose; tests exclude this.
pub fn defaults(name: &str) -> Result<Tree, ConfigError> {
    Ok(Tree { root: compose(&Request::built_in(name), name, &LIBRARY, &Plain)?.root, written: None })
}

/// Composes any files by Hydra's rules only, without the types, checks and renames of this program. A missing value stays `???`.
///
/// # Errors
/// If Hydra would fail too: a missing file, an override that cannot be applied, or an interpolation without a value.
pub fn compose_untyped(request: &Request) -> Result<Tree, ConfigError> {
    let written = compose(request, PpoConfig::DEFAULT_NAME, &LIBRARY, &Plain)?;
    let (root, problems) = interpolation::resolve_present(&written.root);
    let problems: Vec<Problem> = written.problems.into_iter().chain(problems).collect();
    remember_secrets("", &root);
    if problems.is_empty() { Ok(Tree { root, written: None }) } else { Err(ConfigError { problems }) }
}
