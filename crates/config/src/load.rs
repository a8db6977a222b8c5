//! Loads a configuration: the typed settings, checked.

use super::choices::Choices;
use super::compat::{Ignored, Renamed};
use super::processes::Processes;
use super::report::Report;
use super::resolve::{ResolvedConfig, resolve};
use super::schema::Schema;
use super::tree::Tree;
use super::{bounds, extract, first_run, likely_mistakes};
use burnish_hydra::{ConfigError, Request, interpolation};

/// A loaded and checked configuration.
#[derive(Debug)]
pub struct Loaded<T> {
    pub config: T,
    pub tree: Tree,
    /// Keys that were set but have no effect.
    pub ignored: Vec<Ignored>,
    /// Keys that were written under an old name of verl.
    pub renamed: Vec<Renamed>,
    /// The line that names the recipe of the run, if the user names neither a model nor data.
    pub first_run: Option<String>,
    /// The written number of processes.
    pub(super) processes: Processes,
}

impl<T> Loaded<T> {
    /// Compares `trainer.nnodes` and `trainer.n_gpus_per_node` with the number of ranks. With one rank the two keys are reported
    /// as ignored; with several ranks they are checked.
    ///
    /// # Errors
    /// If there are several ranks, and the keys require a different number.
    pub fn started_as(mut self, processes: usize) -> Result<Self, ConfigError> {
        if processes > 1 {
            self.processes.check(processes)?;
            self.ignored.retain(|one| !Processes::is_process_key(one));
        }
        Ok(self)
    }
}

/// Loads a configuration: resolves it, extracts the typed settings and validates them. `choices`: the names in the registries.
///
/// # Errors
/// All problems of the configuration, each with its place and advice.
pub fn load<T: Schema>(request: &Request, choices: &Choices) -> Result<Loaded<T>, ConfigError> {
    let ResolvedConfig { mut tree, ignored, renamed, first_run, mut problems, unresolved, processes, defaults: written } =
        resolve(T::KIND, request)?;
    let (mut defaults, _) = interpolation::resolve(&written);
    first_run::find_missing(T::KIND, &mut defaults);
    problems.extend(first_run::find_missing(T::KIND, &mut tree.root));
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
    let mut likely_mistakes = likely_mistakes::find(&tree.root, &defaults);
    likely_mistakes.retain(|trap| problems.iter().all(|known| known.key != trap.key));
    problems.extend(likely_mistakes);
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded { config, tree, ignored, renamed, first_run, processes }),
        _ => Err(ConfigError { problems }),
    }
}

/// True if a dotted key is equal to another key or below it.
fn is_at_or_below(key: &str, other: &str) -> bool {
    key.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
