//! Hydra's part: files and overrides to one tree, before `${…}` and before any types.

use super::Request;
use super::compose;
use super::error::{ConfigError, Problem};
use super::ignored::Ignored;
use super::lookup;
use super::overrides::{self, Operation, Override};
use super::tree::{Node, Value};

/// What is changed on the way in, so that files and overrides written for other programs fit the keys of this one.
pub trait Adapt {
    /// The keys of one file, laid at their package, before they are merged into the tree.
    fn file(&self, body: Node) -> Result<Node, Problem>;

    /// One override, before it is applied to the tree; `None` drops it.
    fn overriding(&self, one: Override, root: &Node) -> Result<Option<Override>, Problem>;
}

/// Changes nothing: Hydra as it is.
pub struct Plain;

impl Adapt for Plain {
    fn file(&self, body: Node) -> Result<Node, Problem> {
        Ok(body)
    }

    fn overriding(&self, one: Override, _root: &Node) -> Result<Option<Override>, Problem> {
        Ok(Some(one))
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
    let (primary, mut search) = lookup::primary(request, default_name)?;
    let (parsed, mut problems) = parse_overrides(&request.overrides);
    let (hydra, parsed): (Vec<_>, Vec<_>) = parsed.into_iter().partition(|o| o.key == "hydra" || o.key.starts_with("hydra."));
    let (groups, values): (Vec<_>, Vec<_>) = parsed.into_iter().partition(|o| chooses_group(o, &search));
    let (mut root, mut ignored) = match compose::compose(primary, &mut search, &groups, adapt) {
        Ok(composed) => composed,
        Err(problem) => return Err(ConfigError { problems: problems.into_iter().chain([problem]).collect() }),
    };
    for value in values {
        let applied = adapt.overriding(value, &root).and_then(|value| value.map_or(Ok(()), |value| value.apply(&mut root)));
        problems.extend(applied.err());
    }
    ignored.extend(hydra.into_iter().map(|o| Ignored::hydra(o.key, &o.value.map_or(Value::Null, |node| node.value))));
    Ok(Written { root, problems, ignored })
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
    let scalar = one.value.as_ref().is_some_and(|node| matches!(node.value, Value::Text(_) | Value::Null));
    let named_as_group = one.package.is_some() || one.key.contains('/');
    named_as_group || one.operation != Operation::Delete && scalar && !one.key.contains('.') && search.is_group(&one.key)
}
