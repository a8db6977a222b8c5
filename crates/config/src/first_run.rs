//! The recipe that runs when the user names neither a model nor data, and the settings that name them.

use super::compat::{Kind, VerlAdapter};
use super::library::LIBRARY;
use burnish_hydra::lookup::Inserted;
use burnish_hydra::{ConfigError, Node, Problem, Request, Value, below, compose};

/// The settings of a kind that name its models and its rows.
struct FirstRun {
    kind: Kind,
    /// The built-in recipe.
    recipe: &'static str,
    /// The settings that name models. The first is required.
    models: &'static [&'static str],
    /// The settings that name rows. The first is required.
    rows: &'static [&'static str],
}

const MODEL: &[&str] = &["model.path"];
const TRAINER_ROWS: &[&str] = &["data.train_files", "data.val_files"];

const FIRST_RUNS: &[FirstRun] = &[
    FirstRun { kind: Kind::Rl, recipe: "arithmetic/first", models: &["actor_rollout_ref.model.path"], rows: TRAINER_ROWS },
    FirstRun { kind: Kind::Sft, recipe: "arithmetic/first_sft", models: MODEL, rows: TRAINER_ROWS },
    FirstRun { kind: Kind::Rm, recipe: "arithmetic/first_rm", models: MODEL, rows: TRAINER_ROWS },
    FirstRun { kind: Kind::Dpo, recipe: "arithmetic/first_dpo", models: MODEL, rows: TRAINER_ROWS },
    FirstRun {
        kind: Kind::Distill,
        recipe: "arithmetic/first_distill",
        models: &["model.path", "teacher.path", "teacher.logits_file"],
        rows: TRAINER_ROWS,
    },
    FirstRun { kind: Kind::Generation, recipe: "arithmetic/first_generate", models: MODEL, rows: &["data.path"] },
];

impl FirstRun {
    fn for_kind(kind: Kind) -> Option<&'static Self> {
        FIRST_RUNS.iter().find(|known| known.kind == kind)
    }

    /// Returns true if a configuration names a model or rows.
    fn is_named(&self, root: &Node) -> bool {
        self.models.iter().chain(self.rows).any(|key| is_set(root, key))
    }

    /// Returns the settings that every run of the kind needs.
    fn required(&self) -> [&'static str; 2] {
        [self.models[0], self.rows[0]]
    }
}

/// True if a setting has a value other than null and an empty list.
fn is_set(root: &Node, key: &str) -> bool {
    root.get(key).is_some_and(|node| !is_nothing(&node.value))
}

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null) || matches!(value, Value::List(items) if items.is_empty())
}

/// Returns the recipe to insert beneath the files and overrides of a request that names neither a model nor rows.
///
/// # Errors
/// If there is nothing to compose.
pub(crate) fn recipe(kind: Kind, request: &Request, defaults: &Node) -> Result<Option<Inserted>, ConfigError> {
    let Some(first) = FirstRun::for_kind(kind) else { return Ok(None) };
    let given = compose(request, kind.default_file(), &LIBRARY, &VerlAdapter::new(kind, defaults))?;
    let source = LIBRARY.recipe(first.recipe).filter(|_| !first.is_named(&given.root));
    Ok(source.map(|(_, source)| Inserted { above: kind.default_file(), source }))
}

/// Returns the line that names the recipe of the run.
pub(crate) fn note(kind: Kind) -> Option<String> {
    let first = FirstRun::for_kind(kind)?;
    let [model, rows] = first.required();
    let recipe = first.recipe;
    Some(format!("no model or data named: recipes/{recipe}.yaml runs; name yours with {model}=… {rows}=…"))
}

/// Returns a problem for each required setting without a value, and puts a text in its place, so that further problems are found.
pub(crate) fn find_missing(kind: Kind, root: &mut Node) -> Vec<Problem> {
    let Some(first) = FirstRun::for_kind(kind) else { return vec![] };
    let mut problems = vec![];
    for key in first.required() {
        let Some(node) = root.get(key).filter(|node| is_nothing(&node.value)) else { continue };
        let origin = node.origin.clone();
        fill(root, "", key);
        let other = if first.models.contains(&key) { "data is named, but no model" } else { "a model is named, but no data" };
        let message = format!("`{key}` is not set: {other}");
        let example = if first.models.contains(&key) { "FOLDER, or a name on the Hub" } else { "FILE, or a name on the Hub" };
        let help = format!("write {key}={example}; for the built-in model and data, start from --config {}.yaml", first.recipe);
        problems.push(Problem::new(key, message).at(&origin).help(help));
    }
    if let [model, rows] = problems.as_mut_slice() {
        for problem in [model, rows] {
            problem.message = format!("`{}` is not set: the configuration names neither a model nor data", problem.key);
        }
    }
    problems
}

/// Puts a text in the place of a setting without a value, and of all settings that take their value from it.
fn fill(node: &mut Node, here: &str, key: &str) {
    if let Value::Map(entries) = &mut node.value {
        return entries.iter_mut().for_each(|(name, node)| fill(node, &below(here, name), key));
    }
    if here == key || node.through.as_deref() == Some(key) {
        node.value = Value::Text("unset".to_owned());
    }
}
