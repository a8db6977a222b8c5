//! The kinds of configuration that the program knows. A new one is a line here.

use super::library::LIBRARY;
use super::schema::{EvalConfig, GenerationConfig, PpoConfig, Schema, SftConfig};
use super::{Choices, Kind, Loaded, Request, Tree};
use crate::hydra::{ConfigError, Node, Value};
use crate::hydra::{lookup, yaml};

/// One kind of configuration.
pub struct Known {
    /// As in `--for NAME`.
    pub name: &'static str,
    pub kind: Kind,
    /// The built-in file that holds all its defaults.
    pub file: &'static str,
    /// The command that reads it.
    pub command: &'static str,
    load: Load,
}

type Load = fn(&Request, &Choices) -> Result<Loaded<()>, ConfigError>;

/// Every kind; where nothing tells which is meant, the first.
pub const KINDS: &[Known] = &[
    Known::of::<PpoConfig>("rl", "trainer --config ppo_trainer.yaml"),
    Known::of::<SftConfig>("sft", "trainer sft --config sft_trainer.yaml"),
    Known::of::<GenerationConfig>("generate", "trainer generate --config generation.yaml"),
    Known::of::<EvalConfig>("eval", "trainer eval --config evaluation.yaml"),
];

impl Known {
    const fn of<T: Schema>(name: &'static str, command: &'static str) -> Self {
        Self { name, kind: T::KIND, file: T::DEFAULT_NAME, command, load: load::<T> }
    }

    /// The resolved configuration, checked as a run checks it, but without its type.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(&self, request: &Request, choices: &Choices) -> Result<Loaded<()>, ConfigError> {
        (self.load)(request, choices)
    }

    /// Its built-in configuration as written.
    ///
    /// # Errors
    /// If it does not compose, which tests exclude.
    pub fn defaults(&self) -> Result<Tree, ConfigError> {
        super::defaults(self.file)
    }
}

fn load<T: Schema>(request: &Request, choices: &Choices) -> Result<Loaded<()>, ConfigError> {
    let Loaded { config: _, tree, ignored, renamed } = super::load::<T>(request, choices)?;
    Ok(Loaded { config: (), tree, ignored, renamed })
}

/// The kind of that name.
pub fn named(name: &str) -> Option<&'static Known> {
    KINDS.iter().find(|known| known.name == name)
}

/// The kind that a request means: that of its file's name, of a file that its `defaults:` list includes, or whose keys are most
/// like its own.
///
/// # Errors
/// If there is no such file, or it is not YAML.
pub fn infer(request: &Request) -> Result<&'static Known, ConfigError> {
    if let Some(known) = by_name(request)? {
        return Ok(known);
    }
    let (source, _) = lookup::primary(request, KINDS[0].file, &LIBRARY)?;
    let body = yaml::parse(&source)?;
    let mut best = (&KINDS[0], 0.0);
    for known in KINDS {
        let likeness = likeness(&body, &known.defaults()?.root);
        if likeness > best.1 {
            best = (known, likeness);
        }
    }
    Ok(best.0)
}

/// The kind that is certain from the names of the file and of those that it includes; the default if no file is named.
///
/// # Errors
/// If there is no such file, or it is not YAML.
pub fn by_name(request: &Request) -> Result<Option<&'static Known>, ConfigError> {
    if request.config.is_none() && request.config_name.is_none() {
        return Ok(Some(&KINDS[0]));
    }
    let (source, search) = lookup::primary(request, KINDS[0].file, &LIBRARY)?;
    let mut open = vec![source];
    let mut next = 0;
    while let Some(source) = open.get(next).cloned() {
        let stem = source.name.rsplit('/').next().unwrap_or_default().trim_end_matches(".yaml").trim_end_matches(".yml");
        if let Some(known) = KINDS.iter().find(|known| known.file == stem) {
            return Ok(Some(known));
        }
        for name in included(&yaml::parse(&source)?) {
            open.extend(search.find(&name, &open)?);
        }
        next += 1;
    }
    Ok(None)
}

/// The files of a `defaults:` list that stand for themselves, not for an option of a group.
fn included(body: &Node) -> Vec<String> {
    let Some(Value::List(items)) = body.child("defaults").map(|defaults| &defaults.value) else { return vec![] };
    let names = items.iter().filter_map(|item| item.value.plain_text()).filter(|name| name != "_self_");
    names.map(|name| name.split('@').next().unwrap_or_default().trim_start_matches('/').to_string()).collect()
}

/// Of the top-level keys of either, the share that both have.
fn likeness(a: &Node, b: &Node) -> f64 {
    let names = |node: &Node| match &node.value {
        Value::Map(entries) => entries.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(),
        _ => vec![],
    };
    let (a, b) = (names(a), names(b));
    let shared = a.iter().filter(|name| b.contains(name)).count();
    shared as f64 / (a.len() + b.len() - shared).max(1) as f64
}
