//! The kinds of configuration. A new kind is a line in [`KINDS`].

use super::choices::Choices;
use super::compat::Kind;
use super::compose;
use super::library::LIBRARY;
use super::load::{self, Loaded};
use super::schema::{DistillConfig, DpoConfig, EvalConfig, GenerationConfig, PpoConfig, RmConfig, Schema, SftConfig};
use super::tree::Tree;
use burnish_hydra::{ConfigError, Node, Request, Value, lookup, yaml};

/// One kind of configuration.
pub struct ConfigKind {
    /// The name in `--for NAME`.
    pub name: &'static str,
    pub kind: Kind,
    /// The built-in file with all its defaults.
    pub file: &'static str,
    /// The command that reads it.
    pub command: &'static str,
    load: Load,
}

type Load = fn(&Request, &Choices) -> Result<Loaded<()>, ConfigError>;

/// All kinds. The first is the default if the kind is unknown.
pub const KINDS: &[ConfigKind] = &[
    ConfigKind::new::<PpoConfig>("rl", "trainer --config ppo_trainer.yaml"),
    ConfigKind::new::<SftConfig>("sft", "trainer sft --config sft_trainer.yaml"),
    ConfigKind::new::<RmConfig>("rm", "trainer rm --config rm_trainer.yaml"),
    ConfigKind::new::<DpoConfig>("dpo", "trainer dpo --config dpo_trainer.yaml"),
    ConfigKind::new::<DistillConfig>("distill", "trainer distill --config distill_trainer.yaml"),
    ConfigKind::new::<GenerationConfig>("generate", "trainer generate --config generation.yaml"),
    ConfigKind::new::<EvalConfig>("eval", "trainer eval --config evaluation.yaml"),
];

impl ConfigKind {
    const fn new<T: Schema>(name: &'static str, command: &'static str) -> Self {
        Self { name, kind: T::KIND, file: T::DEFAULT_NAME, command, load: load::<T> }
    }

    /// Loads the configuration with all checks of a run, but without its typed struct.
    ///
    /// # Errors
    /// All problems of the configuration.
    pub fn load(&self, request: &Request, choices: &Choices) -> Result<Loaded<()>, ConfigError> {
        (self.load)(request, choices)
    }

    /// Returns the built-in configuration of this kind, unresolved.
    ///
    /// # Errors
    /// If the built-in files do not compose; tests exclude this.
    pub fn defaults(&self) -> Result<Tree, ConfigError> {
        compose::defaults(self.file)
    }
}

fn load<T: Schema>(request: &Request, choices: &Choices) -> Result<Loaded<()>, ConfigError> {
    let Loaded { config: _, tree, ignored, renamed, first_run, processes } = load::load::<T>(request, choices)?;
    Ok(Loaded { config: (), tree, ignored, renamed, first_run, processes })
}

/// Returns the kind with this name.
pub fn named(name: &str) -> Option<&'static ConfigKind> {
    KINDS.iter().find(|known| known.name == name)
}

/// Returns the kind of a request: by the name of its file, by a file in its `defaults:` list, or else by the most similar keys.
///
/// # Errors
/// If the file does not exist or is not YAML.
pub fn infer(request: &Request) -> Result<&'static ConfigKind, ConfigError> {
    if let Some(known) = by_name(request)? {
        return Ok(known);
    }
    let (source, _) = lookup::primary(request, KINDS[0].file, &LIBRARY)?;
    let body = yaml::parse(&source)?;
    let mut best = (&KINDS[0], (0, 0.0));
    for known in KINDS {
        let likeness = likeness(&body, &known.defaults()?.root);
        if likeness > best.1 {
            best = (known, likeness);
        }
    }
    Ok(best.0)
}

/// Returns the kind by the names of the file and of the files in its `defaults:` list; the default kind if no file is named.
///
/// # Errors
/// If the file does not exist or is not YAML.
pub fn by_name(request: &Request) -> Result<Option<&'static ConfigKind>, ConfigError> {
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

/// Returns the primary files in a `defaults:` list, without options of groups.
fn included(body: &Node) -> Vec<String> {
    let Some(Value::List(items)) = body.child("defaults").map(|defaults| &defaults.value) else { return vec![] };
    let names = items.iter().filter_map(|item| item.value.plain_text()).filter(|name| name != "_self_");
    names.map(|name| name.split('@').next().unwrap_or_default().trim_start_matches('/').to_string()).collect()
}

/// Returns the similarity of a configuration and a kind: the number of shared keys, then the share of shared top-level keys,
/// which decides ties.
fn likeness(body: &Node, kind: &Node) -> (usize, f64) {
    let names = |node: &Node| match &node.value {
        Value::Map(entries) => entries.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(),
        _ => vec![],
    };
    let (a, b) = (names(body), names(kind));
    let shared = a.iter().filter(|name| b.contains(name)).count();
    (shared_keys(body, kind), shared as f64 / (a.len() + b.len() - shared).max(1) as f64)
}

/// Returns the number of shared keys, at any depth.
fn shared_keys(a: &Node, b: &Node) -> usize {
    let Value::Map(entries) = &a.value else { return 0 };
    entries.iter().filter_map(|(name, below)| Some(1 + shared_keys(below, b.child(name)?))).sum()
}
