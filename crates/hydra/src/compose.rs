//! Composes files and overrides into one tree, before `${…}` is resolved.

use super::adapt::Adapt;
use super::defaults_list::{self, ConfigFile};
use super::error::{ConfigError, Problem};
use super::ignored::Ignored;
use super::library::Library;
use super::lookup::{self, Inserted, SearchPath};
use super::overrides::{self, Override};
use super::provenance::YamlSource;
use super::request::Request;
use super::tree::{Node, Value};
use std::sync::Arc;

/// Maximum number of wrong overrides that are reported, because the suggestion for each key takes time.
const MAX_PROBLEMS: usize = 1000;

/// A composed tree with unresolved `${…}`.
pub struct ComposedTree {
    pub root: Node,
    pub problems: Vec<Problem>,
    pub ignored: Vec<Ignored>,
}

/// Finds the file that the request names, or the file `default_name`, composes it and applies the overrides in order.
///
/// # Errors
/// If there is nothing to compose. All other problems are in the result.
pub fn compose(
    request: &Request,
    default_name: &str,
    library: &'static Library,
    adapt: &dyn Adapt,
) -> Result<ComposedTree, ConfigError> {
    compose_with(request, default_name, library, adapt, None)
}

/// Like [`compose()`], with the settings of a file inserted beneath those that the user gives.
///
/// # Errors
/// The errors of [`compose()`].
pub fn compose_with(
    request: &Request,
    default_name: &str,
    library: &'static Library,
    adapt: &dyn Adapt,
    inserted: Option<Inserted>,
) -> Result<ComposedTree, ConfigError> {
    let (parsed, mut problems) = parse_overrides(&request.overrides);
    let (hydra, parsed): (Vec<_>, Vec<_>) = parsed.into_iter().partition(|o| is_hydras(&o.key));
    let (searchpath, hydra): (Vec<_>, Vec<_>) = hydra.into_iter().partition(|o| o.key == "hydra.searchpath");
    let from_override = searchpath.first().and_then(|one| one.value.as_ref());
    let found = lookup::primary(request, default_name, library);
    let composed =
        found.and_then(|(primary, search)| files(primary, SearchPath { inserted, ..search }, from_override, parsed, adapt));
    let ComposedFiles { mut root, mut ignored, values, problem } = match composed {
        Ok(composed) => composed,
        Err(problem) => return Err(ConfigError { problems: problems.into_iter().chain([problem]).collect() }),
    };
    problems.extend(problem);
    for value in values {
        if problems.len() >= MAX_PROBLEMS {
            let message = format!("{MAX_PROBLEMS} problems with overrides; those from `{}` on were not checked", value.key);
            problems.push(Problem::new("", message));
            break;
        }
        match adapt.overriding(value, &root) {
            Ok(adapted) => problems.extend(adapted.into_iter().filter_map(|one| one.apply(&mut root).err())),
            Err(problem) => problems.push(problem),
        }
    }
    ignored.extend(hydra.into_iter().map(|o| Ignored::hydra(o.key, &o.value.map_or(Value::Null, |node| node.value))));
    Ok(ComposedTree { root, problems, ignored })
}

/// The composed files, with the group options from overrides but without overrides of values.
struct ComposedFiles {
    root: Node,
    ignored: Vec<Ignored>,
    /// The overrides that set values.
    values: Vec<Override>,
    /// The problem with the choice of groups. The files are then composed without this choice, to find more problems.
    problem: Option<Problem>,
}

fn files(
    primary: Arc<YamlSource>,
    mut search: SearchPath,
    searchpath: Option<&Node>,
    overrides: Vec<Override>,
    adapt: &dyn Adapt,
) -> Result<ComposedFiles, Problem> {
    let file = ConfigFile::read(primary)?;
    search.folders.extend(file.search_folders(searchpath)?);
    search.built_in_groups = file.uses_built_in(&search);
    let (groups, values): (Vec<_>, Vec<_>) = overrides.into_iter().partition(|one| chooses_group(one, &search));
    match defaults_list::compose(file.clone(), &search, &groups, adapt) {
        Ok((root, ignored)) => Ok(ComposedFiles { root, ignored, values, problem: None }),
        Err(problem) if groups.is_empty() => Err(problem),
        Err(problem) => match defaults_list::compose(file, &search, &[], adapt) {
            Ok((root, ignored)) => Ok(ComposedFiles { root, ignored, values, problem: Some(problem) }),
            Err(_) => Err(problem),
        },
    }
}

fn is_hydras(key: &str) -> bool {
    key == "hydra" || key.starts_with("hydra.") || key.starts_with("hydra/")
}

fn parse_overrides(texts: &[String]) -> (Vec<Override>, Vec<Problem>) {
    let mut parsed = vec![];
    let mut problems = vec![];
    for text in texts {
        match overrides::parse(text) {
            Ok(one) => parsed.push(one),
            Err(problem) => problems.push(problem),
        }
    }
    (parsed, problems)
}

/// True if an override such as `critic=dp_critic` chooses an option of a group rather than setting a value.
fn chooses_group(one: &Override, search: &SearchPath) -> bool {
    let is_map = one.value.as_ref().is_some_and(|node| matches!(node.value, Value::Map(_)));
    !is_map && search.is_group(&one.key)
}
