//! Composition of verl's files, as in verl.

use super::files;
use crate::library::LIBRARY;
use burnish_hydra::{ConfigError, Node, Plain, Request, compose};

/// Composes one of verl's configurations, with unresolved `${…}`; `None` if the edition has no such file. The overrides may
/// choose options of groups (`optim=megatron`) and set keys.
///
/// # Errors
/// If Hydra would fail: an unknown option of a group, or an unknown key.
pub fn compose_edition(edition: &str, config: &str, overrides: &[String]) -> Option<Result<Node, ConfigError>> {
    files::find(edition, config)?;
    let name = format!("{}{config}", files::prefix(edition));
    let request = Request { config: Some(name.clone()), overrides: overrides.to_vec(), ..Request::default() };
    Some(compose(&request, &name, &LIBRARY, &Plain).and_then(|written| match written.problems {
        problems if problems.is_empty() => Ok(written.root),
        problems => Err(ConfigError { problems }),
    }))
}
