//! Resolves a configuration: files are found, composed, overridden and interpolated; what is no setting is taken out.

use super::compat::{self, Ignored, Kind, Renamed, Verl};
use super::compose::defaults as built_in;
use super::library::LIBRARY;
use super::processes::Processes;
use super::saved::{find_hidden, remember_secrets};
use super::tree::Tree;
use burnish_hydra::{ComposedTree, ConfigError, Node, Problem, Request, Value, compose, interpolation, scalar};

/// The settings of a request, resolved but not yet typed.
#[derive(Debug)]
pub struct ResolvedConfig {
    pub tree: Tree,
    pub ignored: Vec<Ignored>,
    pub renamed: Vec<Renamed>,
    /// The number of processes that was written.
    pub(super) processes: Processes,
    /// The problems found so far.
    pub problems: Vec<Problem>,
    /// The keys of the tree that could not be resolved.
    pub(super) unresolved: Vec<String>,
    /// The built-in configuration as written.
    pub(super) defaults: Node,
}

/// Finds, composes, overrides and interpolates a configuration, and removes the keys that are not settings.
///
/// # Errors
/// If there is nothing to compose. All other problems are in the result.
pub fn resolve(kind: Kind, request: &Request) -> Result<ResolvedConfig, ConfigError> {
    let defaults = built_in(kind.default_file())?.root;
    let verl = Verl::new(kind, &defaults);
    let ComposedTree { mut root, mut problems, mut ignored } = compose(request, kind.default_file(), &LIBRARY, &verl)?;
    verl.choose_lora(&mut root);
    ignored.extend(verl.choose_side(&mut root));
    problems.extend(verl.fill(&mut root));
    verl.add_old_names(&mut root);
    let aside = compat::set_aside(kind, &root, &defaults);
    problems.extend(aside.problems);
    let processes = Processes::of(&aside.others);
    ignored.extend(aside.ignored);
    let renamed = verl.renamed().into_iter().chain(aside.renamed).collect();
    let (mut resolved, mut failed) = interpolation::resolve_in(&aside.settings, &root);
    if !failed.is_empty() {
        verl.add_verls_defaults(&mut root);
        (resolved, failed) = interpolation::resolve_in(&aside.settings, &root);
    }
    let unresolved = failed.iter().map(|problem| problem.key.clone()).collect();
    problems.extend(failed);
    numbers_as_names(&mut resolved);
    remember_secrets("", &resolved);
    problems.extend(find_hidden(&resolved));
    let mut written = interpolation::resolve_but_environment(&aside.settings, &root);
    numbers_as_names(&mut written);
    let tree = Tree { root: resolved, written: Some(written) };
    Ok(ResolvedConfig { tree, ignored, renamed, processes, problems, unresolved, defaults })
}

/// Turns numbers that are names into text: a run may be called 2024, and other settings refer to the name as text.
fn numbers_as_names(resolved: &mut Node) {
    for key in ["trainer.project_name", "trainer.experiment_name"] {
        if let Some(node) = resolved.get_mut(key)
            && let Value::Int(_) | Value::Float(_) = node.value
        {
            node.value = Value::Text(scalar::python_text(&node.value));
        }
    }
}
