//! Merges the files of a composition into one tree, in the order of their lists.

use super::file::ConfigFile;
use super::layers;
use crate::adapt::Adapt;
use crate::error::Problem;
use crate::ignored::Ignored;
use crate::lookup::SearchPath;
use crate::merge::{self, Keys};
use crate::overrides::Override;
use crate::tree::{Node, Value};
use std::sync::Arc;

/// Merges the primary file and all files in its `defaults:` list. Also returns settings of Hydra itself, which have no effect.
/// `groups`: the overrides that choose group options.
pub(crate) fn compose(
    primary: ConfigFile,
    search: &SearchPath,
    groups: &[Override],
    adapt: &dyn Adapt,
) -> Result<(Node, Vec<Ignored>), Problem> {
    let primary_source = primary.source.clone();
    let mut root = Node::new(Value::Map(Default::default()), primary.body.origin.clone());
    let (list, hydra) = layers::layers(primary, search, groups)?;
    let mut ignored: Vec<Ignored> =
        hydra.into_iter().map(|(group, options)| Ignored::hydra(group, &Value::Text(options.shown()))).collect();
    for layer in list {
        let mut body = laid_at(&layer.package, layer.file.body.clone());
        if let Some(settings) = body.remove("hydra") {
            let may_search = Arc::ptr_eq(&layer.file.source, &primary_source);
            ignored.extend(ignored_settings(settings, may_search)?);
        }
        merge::merge(&mut root, "", adapt.file(body)?, Keys::MayBeNew)?;
    }
    Ok((root, ignored))
}

/// Returns Hydra's own settings in one file. Only the primary file may set `hydra.searchpath`.
fn ignored_settings(settings: Node, may_search: bool) -> Result<Vec<Ignored>, Problem> {
    let Value::Map(map) = settings.value else { return Ok(vec![Ignored::hydra("hydra".into(), &settings.value)]) };
    let mut ignored = vec![];
    for (name, node) in map {
        match name.as_str() {
            "searchpath" if may_search => {}
            "searchpath" => {
                let message = "`hydra.searchpath` can only be set in the primary file";
                return Err(Problem::new("hydra.searchpath", message).at(&node.origin));
            }
            _ => ignored.push(Ignored::hydra(format!("hydra.{name}"), &node.value)),
        }
    }
    Ok(ignored)
}

/// Nests the keys of a file at its package.
fn laid_at(package: &str, body: Node) -> Node {
    if package.is_empty() {
        return body;
    }
    let mut nested = Node::new(Value::Map(Default::default()), body.origin.clone());
    nested.put(package, body);
    nested
}
