//! Resolves a configuration: finds, composes, overrides and interpolates files, and removes keys that are not settings.

use super::compat::{self, Ignored, Kind, Renamed, VerlAdapter};
use super::compose::defaults as built_in;
use super::first_run;
use super::library::LIBRARY;
use super::processes::Processes;
use super::saved::{find_hidden, remember_secrets};
use super::tree::Tree;
use burnish_hydra::{ComposedTree, ConfigError, Node, Problem, Request, Value, compose_with, interpolation, scalar};
use burnish_util::secret::hide;

/// The settings of a request, resolved but not yet typed.
#[derive(Debug)]
pub struct ResolvedConfig {
    pub tree: Tree,
    pub ignored: Vec<Ignored>,
    pub renamed: Vec<Renamed>,
    /// The line that names the recipe of the run, if the user names neither a model nor data.
    pub first_run: Option<String>,
    /// The written number of processes.
    pub(super) processes: Processes,
    /// The problems found so far.
    pub problems: Vec<Problem>,
    /// The keys of the tree that could not be resolved.
    pub(super) unresolved: Vec<String>,
    /// The built-in configuration, unresolved.
    pub(super) defaults: Node,
}

/// Finds, composes, overrides and interpolates a configuration, and removes the keys that are not settings.
///
/// # Errors
/// If there is nothing to compose. All other problems are in the result.
pub fn resolve(kind: Kind, request: &Request) -> Result<ResolvedConfig, ConfigError> {
    let defaults = built_in(kind.default_file())?.root;
    let verl = VerlAdapter::new(kind, &defaults);
    let inserted = first_run::recipe(kind, request, &defaults)?;
    let first_run = inserted.as_ref().and_then(|_| first_run::note(kind));
    let ComposedTree { mut root, mut problems, mut ignored } =
        compose_with(request, kind.default_file(), &LIBRARY, &verl, inserted)?;
    verl.choose_lora(&mut root);
    ignored.extend(verl.choose_side(&mut root));
    problems.extend(verl.fill(&mut root));
    verl.add_old_names(&mut root);
    let split = compat::remove_unsupported(kind, &root, &defaults);
    problems.extend(split.problems);
    let processes = Processes::from_keys(&split.others);
    ignored.extend(split.ignored);
    let renamed = verl.renamed().into_iter().chain(split.renamed).collect();
    let (mut resolved, mut failed) = interpolation::resolve_in(&split.settings, &root);
    if !failed.is_empty() {
        verl.add_verls_defaults(&mut root);
        (resolved, failed) = interpolation::resolve_in(&split.settings, &root);
    }
    let unresolved = failed.iter().map(|problem| problem.key.clone()).collect();
    problems.extend(failed);
    numbers_as_names(&mut resolved);
    remember_secrets("", &resolved);
    problems.extend(find_hidden(&resolved));
    problems.extend(secret_names(&resolved));
    let mut written = interpolation::resolve_but_environment(&split.settings, &root);
    numbers_as_names(&mut written);
    let tree = Tree { root: resolved, written: Some(written) };
    Ok(ResolvedConfig { tree, ignored, renamed, first_run, processes, problems, unresolved, defaults })
}

/// Keys of the names of a run.
const NAMES: [&str; 2] = ["trainer.project_name", "trainer.experiment_name"];

/// Refuses secrets in the names of a run, because its folder has the names and all trackers receive them.
fn secret_names(resolved: &Node) -> Vec<Problem> {
    let text = |node: &Node| matches!(&node.value, Value::Text(text) if hide(text) != text.as_str());
    let found = NAMES.iter().filter_map(|key| Some((key, resolved.get(key).filter(|node| text(node))?)));
    let problem = |(key, node): (&&str, &Node)| {
        let message = format!("`{key}` contains a secret, but names of runs are shown, saved and sent to trackers");
        Problem::new(key, message).at(&node.origin).help(format!("choose a name without it: {key}=NAME"))
    };
    found.map(problem).collect()
}

/// Converts numbers to text in names: a run may have the name 2024, and other settings refer to the name as text.
fn numbers_as_names(resolved: &mut Node) {
    for key in NAMES {
        if let Some(node) = resolved.get_mut(key)
            && let Value::Int(_) | Value::Float(_) = node.value
        {
            node.value = Value::Text(scalar::python_text(&node.value));
        }
    }
}
