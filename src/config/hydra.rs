//! Hydra's part: files and overrides to one tree, before `${…}` and before any types.

use super::Request;
use super::compat::Ignored;
use super::compose::{self, File};
use super::error::{ConfigError, Problem};
use super::lookup;
use super::overrides::{self, Override};
use super::tree::{Node, Value};

/// What is changed on the way in, so that files and overrides written for other programs fit the keys of this one.
pub trait Adapt {
    /// The keys of one file, laid at their package, before they are merged into the tree.
    fn file(&self, body: Node) -> Result<Node, Problem>;

    /// One override, before it is applied to the tree: those that are applied in its place.
    fn overriding(&self, one: Override, root: &Node) -> Result<Vec<Override>, Problem>;
}

/// Changes nothing: Hydra as it is.
pub struct Plain;

impl Adapt for Plain {
    fn file(&self, body: Node) -> Result<Node, Problem> {
        Ok(body)
    }

    fn overriding(&self, one: Override, _root: &Node) -> Result<Vec<Override>, Problem> {
        Ok(vec![one])
    }
}

/// The tree as it is written, before `${…}`.
pub struct Written {
    pub root: Node,
    pub problems: Vec<Problem>,
    pub ignored: Vec<Ignored>,
}

/// Finds the file that the request names, composes it and applies the overrides in order.
pub fn compose(request: &Request, default_name: &str, adapt: &dyn Adapt) -> Result<Written, ConfigError> {
    let (parsed, mut problems) = parse_overrides(&request.overrides);
    let (hydra, parsed): (Vec<_>, Vec<_>) = parsed.into_iter().partition(|o| is_hydras(&o.key));
    let (searchpath, hydra): (Vec<_>, Vec<_>) = hydra.into_iter().partition(|o| o.key == "hydra.searchpath");
    let from_override = searchpath.first().and_then(|one| one.value.as_ref());
    let composed = files(request, default_name, from_override, parsed, adapt);
    let Files { mut root, mut ignored, values, problem } = match composed {
        Ok(composed) => composed,
        Err(problem) => return Err(ConfigError { problems: problems.into_iter().chain([problem]).collect() }),
    };
    problems.extend(problem);
    for value in values {
        match adapt.overriding(value, &root) {
            Ok(adapted) => problems.extend(adapted.into_iter().filter_map(|one| one.apply(&mut root).err())),
            Err(problem) => problems.push(problem),
        }
    }
    ignored.extend(hydra.into_iter().map(|o| Ignored::hydra(o.key, &o.value.map_or(Value::Null, |node| node.value))));
    Ok(Written { root, problems, ignored })
}

/// The files alone, with the options of groups that overrides choose.
struct Files {
    root: Node,
    ignored: Vec<Ignored>,
    /// The overrides that set values.
    values: Vec<Override>,
    /// What is wrong with the choice of groups; the files are then composed without it, to find what else is wrong.
    problem: Option<Problem>,
}

fn files(
    request: &Request,
    default_name: &str,
    searchpath: Option<&Node>,
    overrides: Vec<Override>,
    adapt: &dyn Adapt,
) -> Result<Files, Problem> {
    let (primary, mut search) = lookup::primary(request, default_name)?;
    let file = File::read(primary)?;
    search.folders.extend(file.search_folders(searchpath)?);
    search.built_in_groups = file.uses_built_in(&search);
    let (groups, values): (Vec<_>, Vec<_>) = overrides.into_iter().partition(|one| chooses_group(one, &search));
    match compose::compose(file.clone(), &search, &groups, adapt) {
        Ok((root, ignored)) => Ok(Files { root, ignored, values, problem: None }),
        Err(problem) if groups.is_empty() => Err(problem),
        Err(problem) => match compose::compose(file, &search, &[], adapt) {
            Ok((root, ignored)) => Ok(Files { root, ignored, values, problem: Some(problem) }),
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

/// Whether an override such as `critic=dp_critic` chooses an option of a group rather than setting a value.
fn chooses_group(one: &Override, search: &lookup::SearchPath) -> bool {
    let is_map = one.value.as_ref().is_some_and(|node| matches!(node.value, Value::Map(_)));
    !is_map && search.is_group(&one.key)
}
