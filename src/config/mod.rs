//! The configuration: YAML files, composed and overridden by Hydra's rules, checked and typed.
//!
//! [`load`] shows the order of the steps. Every value knows where it was written, so that every message can say so. The YAML
//! files of `config/` are the only place of defaults: the structs of [`schema`] have none.

pub mod compat;
pub mod complete;
pub mod diff;
pub mod docs;
pub mod embedded;
pub mod explain;
pub mod from_verl;
pub mod json_schema;
pub mod kinds;
pub mod plan;
pub mod schema;

mod accepts;
mod bounds;
mod check_names;
mod choices;
mod comment;
mod extract;
mod library;
mod report;
mod show;
mod traps;

pub use crate::hydra::{ConfigError, Mark, Node, Origin, Problem, Request, Source, Value};
pub use choices::Choices;
pub use compat::{Ignored, Kind, Renamed};
pub use plan::{BatchPlan, MicroBatch, UpdatePlan};
pub use report::Report;
pub use schema::{PpoConfig, Schema, SftConfig};

use crate::hydra::{Plain, Written, compose, interpolation, scalar, yaml};
use compat::Verl;
use library::LIBRARY;
use std::sync::Arc;

/// A loaded and checked configuration.
#[derive(Debug)]
pub struct Loaded<T> {
    pub config: T,
    pub tree: Tree,
    /// Keys that were set but have no effect here.
    pub ignored: Vec<Ignored>,
    /// Keys that were written under a former name of verl's.
    pub renamed: Vec<Renamed>,
}

/// The resolved configuration in the order of the built-in files, with the origin of every value.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    root: Node,
}

impl Tree {
    /// Returns the root of the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the whole resolved configuration as YAML, which can be loaded again.
    pub fn to_yaml(&self) -> String {
        format!("{}\n", self.root.value.to_yaml())
    }

    /// Reads the output of [`Tree::to_yaml`]; `name` is for messages.
    ///
    /// # Errors
    /// If the text is not YAML.
    pub fn parse(name: &str, text: String) -> Result<Self, ConfigError> {
        let source = Arc::new(Source { name: name.to_owned(), text });
        let root = yaml::parse(&source).map_err(|problem| ConfigError { problems: vec![problem] })?;
        Ok(Self { root })
    }

    /// Returns the place where the value of a dotted key was written.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.root.get(key).map(|node| &node.origin)
    }

    /// True if a built-in file gave the key its value, rather than the user.
    pub fn is_built_in(&self, key: &str) -> bool {
        let ours = |source: &Source| LIBRARY.is_built_in(source) || LIBRARY.is_copy_of_built_in(source);
        self.origin(key).is_none_or(|origin| matches!(origin, Origin::File { source, .. } if ours(source)))
    }

    /// Returns the value of a dotted key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.root.get(key).map(|node| &node.value)
    }

    /// Replaces the value of an existing key, for values that are only known once a run starts.
    pub fn set(&mut self, key: &str, value: Value) {
        if let Some(node) = self.root.get_mut(key) {
            node.value = value;
        }
    }

    /// Returns all dotted keys, mappings before their entries.
    pub fn keys(&self) -> Vec<String> {
        self.root.keys()
    }
}

/// The settings of a request, resolved but not yet typed.
#[derive(Debug)]
pub struct Settled {
    pub tree: Tree,
    pub ignored: Vec<Ignored>,
    pub renamed: Vec<Renamed>,
    /// The problems found so far.
    pub problems: Vec<Problem>,
    /// The keys of the tree that could not be resolved.
    unresolved: Vec<String>,
    /// The built-in configuration as written.
    defaults: Node,
}

/// Finds, composes, overrides and interpolates a configuration, and removes the keys that are not settings.
///
/// # Errors
/// If there is nothing to compose. All other problems are in the result.
pub fn settle(kind: Kind, request: &Request) -> Result<Settled, ConfigError> {
    let defaults = defaults(kind.default_file())?.root;
    let verl = Verl::new(kind, &defaults);
    let Written { mut root, mut problems, mut ignored } = compose(request, kind.default_file(), &LIBRARY, &verl)?;
    verl.choose_lora(&mut root);
    problems.extend(verl.fill(&mut root));
    verl.add_old_names(&mut root);
    let aside = compat::set_aside(kind, &root, &defaults);
    problems.extend(aside.problems);
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
    Ok(Settled { tree: Tree { root: resolved }, ignored, renamed, problems, unresolved, defaults })
}

/// True if a dotted key is another one or below it.
fn is_at_or_below(key: &str, other: &str) -> bool {
    key.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
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

/// Loads a configuration: resolves it, extracts the typed settings and validates them. `choices`: the names that registries know.
///
/// # Errors
/// If something is wrong with the configuration: all problems, each with its place and what to do.
pub fn load<T: Schema>(request: &Request, choices: &Choices) -> Result<Loaded<T>, ConfigError> {
    let Settled { tree, ignored, renamed, mut problems, unresolved, defaults: written } = settle(T::KIND, request)?;
    let (defaults, _) = interpolation::resolve(&written);
    let (config, mut wrong) = match extract::extract::<T>(&tree.root, &defaults) {
        Ok(config) => (Some(config.completed(choices)), vec![]),
        Err(wrong) => (None, wrong),
    };
    let mut out_of_bounds = bounds::find(&tree.root, &written);
    out_of_bounds.retain(|problem| wrong.iter().all(|known| !is_at_or_below(&known.key, &problem.key)));
    wrong.extend(out_of_bounds);
    let mut wrong = extract::without_followers(wrong, &tree.root);
    wrong.retain(|problem| !unresolved.contains(&problem.key));
    let refused = wrong.iter().map(|problem| problem.key.clone()).collect();
    let mut report = Report { tree: &tree.root, defaults: &defaults, choices, refused, problems: wrong };
    if let Some(config) = &config {
        config.validate(&mut report);
        report.check_refusals();
    }
    report.check_names();
    problems.extend(report.problems);
    let mut traps = traps::find(&tree.root, &defaults);
    traps.retain(|trap| problems.iter().all(|known| known.key != trap.key));
    problems.extend(traps);
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded { config, tree, ignored, renamed }),
        _ => Err(ConfigError { problems }),
    }
}

/// Returns the built-in configuration with this name as written, `${…}` included.
///
/// # Errors
/// If the built-in files do not compose, which tests exclude.
pub fn defaults(name: &str) -> Result<Tree, ConfigError> {
    Ok(Tree { root: compose(&Request::built_in(name), name, &LIBRARY, &Plain)?.root })
}

/// Composes any files by Hydra's rules alone, without types, checks or keys of this program. A missing value stays `???`.
///
/// # Errors
/// If Hydra would refuse it too: files that do not exist, overrides that cannot be applied, interpolations without a value.
pub fn compose_untyped(request: &Request) -> Result<Tree, ConfigError> {
    let written = compose(request, PpoConfig::DEFAULT_NAME, &LIBRARY, &Plain)?;
    let (root, problems) = interpolation::resolve_given(&written.root);
    let problems: Vec<Problem> = written.problems.into_iter().chain(problems).collect();
    if problems.is_empty() { Ok(Tree { root }) } else { Err(ConfigError { problems }) }
}
