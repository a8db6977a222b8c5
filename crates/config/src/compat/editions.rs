//! verl's keys and defaults in three editions (`editions.tsv`).

use super::kind::Kind;
use super::patterns::fits_key;
use super::values::alike;
use burnish_hydra::{Node, Origin, Value, YamlSource, yaml};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// The editions, oldest first: verl 0.4.1, 0.7.0 (with what its main branch had added by the end of that month) and 0.9.1.
pub const EDITIONS: [&str; 3] = ["2025-06", "2026-01", "2026-08"];

/// Releases of verl, each with the edition whose defaults are the nearest.
const RELEASES: &[(&str, &str)] = &[
    ("0.3", "2025-06"),
    ("0.4", "2025-06"),
    ("0.5", "2026-01"),
    ("0.6", "2026-01"),
    ("0.7", "2026-01"),
    ("0.8", "2026-08"),
    ("0.9", "2026-08"),
];

/// Defaults of releases that differ from those of their edition and change results: the release, the key, and the value.
pub const RELEASE_DEFAULTS: &[(&str, &str, &str)] = &[("0.3", "actor_rollout_ref.actor.entropy_coeff", "0.001")];

/// Returns the edition with this name, or the nearest edition to a release such as `0.5` or `v0.7.1`, with the release.
pub fn find(name: &str) -> Option<(&'static str, Option<&'static str>)> {
    if let Some(edition) = EDITIONS.into_iter().find(|edition| *edition == name) {
        return Some((edition, None));
    }
    let numbers: Vec<&str> = name.trim_start_matches('v').splitn(3, '.').collect();
    let minor = numbers.get(..2)?.join(".");
    RELEASES.iter().find(|(release, _)| *release == minor).map(|(release, edition)| (*edition, Some(*release)))
}

/// One key of one of verl's configurations.
#[derive(Debug, Clone, Copy)]
pub struct VerlKey {
    /// verl's file, such as `ppo_trainer`.
    pub config: &'static str,
    pub key: &'static str,
    /// The default in each edition as YAML; `None` if the edition does not have the key.
    pub defaults: [Option<&'static str>; 3],
}

/// Returns all keys, in the order of the file.
pub fn keys() -> impl Iterator<Item = VerlKey> {
    include_str!("editions.tsv").lines().skip(1).filter_map(|line| {
        let mut cells = line.split('\t');
        let (config, key) = (cells.next()?, cells.next()?);
        let mut default = || cells.next().filter(|text| *text != "-");
        Some(VerlKey { config, key, defaults: [default(), default(), default()] })
    })
}

static DEFAULTS: LazyLock<HashMap<(Kind, &str), Vec<&str>>> = LazyLock::new(|| {
    let mut table: HashMap<(Kind, &str), Vec<&str>> = HashMap::new();
    for key in keys() {
        let [first, later @ ..] = key.defaults;
        let known: Vec<&str> = later.into_iter().flatten().collect();
        // The oldest edition is read only for keys that later files no longer have; for other keys, its defaults are ordinary
        // values.
        let known = if known.is_empty() { first.into_iter().collect() } else { known };
        table.entry((Kind::of_verl_file(key.config), key.key)).or_default().extend(known);
    }
    table
});

/// The sections of verl's files. The generation server reads the sections of reinforcement learning.
static SECTIONS: LazyLock<HashSet<(Kind, &str)>> = LazyLock::new(|| {
    let mut sections = HashSet::new();
    for key in keys() {
        let kind = Kind::of_verl_file(key.config);
        let ancestors = std::iter::successors(key.key.rsplit_once('.'), |(parent, _)| parent.rsplit_once('.'));
        for (section, _) in ancestors {
            sections.insert((kind, section));
            if kind == Kind::Rl {
                sections.insert((Kind::Generation, section));
            }
        }
    }
    sections
});

/// Returns the keys of a kind with their default in the newest edition that has them.
pub(crate) fn newest_defaults(kind: Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_kind = keys().filter(move |key| Kind::of_verl_file(key.config) == kind);
    of_kind.filter_map(|key| Some((key.key, key.defaults.into_iter().flatten().next_back()?)))
}

/// The default training framework.
pub const FSDP: &str = "fsdp";
/// The framework with separate keys for adapters.
pub const MEGATRON: &str = "megatron";

/// Keys in verl's files that its program does not read: the files, the framework (all frameworks if empty), the keys, and the
/// reason.
const UNREAD: &[(&[&str], &str, &[&str], &str)] = &[
    (
        &["sft_trainer"],
        "",
        &[
            "optim.lr_scheduler_type",
            "optim.warmup_style",
            "optim.lr_warmup_steps",
            "optim.min_lr_ratio",
            "optim.num_cycles",
            "optim.total_training_steps",
        ],
        "fsdp_sft_trainer reads only optim.lr_scheduler and the share of warm-up",
    ),
    (
        &["ppo_trainer", "ppo_megatron_trainer", "sft_trainer_engine"],
        "",
        &["**.optim.total_training_steps"],
        "verl overwrites it with the length of the run",
    ),
    (
        &["ppo_trainer", "sft_trainer_engine"],
        FSDP,
        &["**.lora.rank", "**.lora.alpha", "**.lora.target_modules", "**.lora.exclude_modules", "**.lora.adapter_path"],
        "only Megatron reads lora.*; other frameworks read lora_rank, lora_alpha, target_modules, exclude_modules, lora_adapter_path",
    ),
    (
        &["ppo_trainer", "ppo_megatron_trainer", "sft_trainer_engine"],
        MEGATRON,
        &["**.lora_rank", "**.lora_alpha", "**.model.target_modules", "**.model.exclude_modules", "**.lora_adapter_path"],
        "Megatron reads lora.rank, lora.alpha and the other keys of lora",
    ),
];

/// Keys of reinforcement learning that the workers of only some editions read: the edition that does not read them, the framework
/// (all frameworks if empty), the keys, and the reason.
const UNREAD_IN: &[(&str, &str, &[&str], &str)] = &[
    ("2026-08", "", &["actor_rollout_ref.actor.grad_clip", "critic.grad_clip"], "verl 0.9 clips by optim.clip_grad"),
    ("2026-01", FSDP, &["actor_rollout_ref.actor.optim.clip_grad", "critic.optim.clip_grad"], "verl 0.7 clips by grad_clip"),
    ("2026-01", FSDP, &["actor_rollout_ref.actor.optim.warmup_style"], "the actor of verl 0.7 reads lr_scheduler_type"),
];

/// Returns the reason why verl's program for this file does not read a key with this framework; `None` if it does.
pub fn unread(edition: &str, config: &str, framework: &str, key: &str) -> Option<&'static str> {
    let concerns = |of: &str| of.is_empty() || of == if framework == MEGATRON { MEGATRON } else { FSDP };
    let mut own = UNREAD_IN.iter().filter(|(in_edition, of, ..)| *in_edition == edition && concerns(of));
    if config.starts_with("ppo_")
        && let Some((.., reason)) = own.find(|(_, _, keys, _)| keys.contains(&key))
    {
        return Some(reason);
    }
    let mut rows = UNREAD.iter().filter(|(files, of, ..)| files.contains(&config) && concerns(of));
    rows.find(|(_, _, keys, _)| keys.iter().any(|pattern| fits_key(pattern, key))).map(|(.., reason)| *reason)
}

/// Further values without an effect: defaults in the groups of frameworks.
const NEUTRAL: &[(&str, &str)] = &[
    ("**.override_optimizer_config.decoupled_weight_decay", "true"),
    ("**.optim.lr_decay_ratio", "1.0"),
    ("**.optim.wd_incr_style", "constant"),
];

/// True if an edition has this key or section.
pub fn is_known(kind: Kind, key: &str) -> bool {
    DEFAULTS.contains_key(&(kind, key)) || SECTIONS.contains(&(kind, key))
}

/// True if an edition has this key as a mapping that takes any key.
pub fn is_open(kind: Kind, key: &str) -> bool {
    DEFAULTS.get(&(kind, key)).is_some_and(|texts| texts.contains(&"{}"))
}

/// True if an edition has this value as the default of the key, so that the value has no effect. `false` has no effect if no
/// default is true. For keys that no edition has, `false` and 0 have no effect.
pub fn is_default(kind: Kind, key: &str, value: &Value) -> bool {
    if NEUTRAL.iter().any(|(pattern, text)| fits_key(pattern, key) && is_written(text, value)) {
        return true;
    }
    match DEFAULTS.get(&(kind, key)) {
        Some(texts) => {
            let off = *value == Value::Bool(false) && !texts.iter().any(|text| is_written(text, &Value::Bool(true)));
            off || texts.iter().any(|text| is_written(text, value))
        }
        None => matches!(value, Value::Bool(false) | Value::Int(0)) || *value == Value::Float(0.0),
    }
}

fn is_written(text: &str, value: &Value) -> bool {
    if matches!(value, Value::Text(written) if written.eq_ignore_ascii_case(text)) {
        return true;
    }
    // The value of `${oc.select:key,default}` is its default if `key` is unset.
    let fallback = text.strip_prefix("${").and_then(|inside| inside.strip_suffix('}')).map(|inside| inside.split_once(','));
    match fallback {
        None => parse(text).is_some_and(|default| alike(&default.value, value)),
        Some(Some((_, default))) => parse(default.trim()).is_some_and(|default| alike(&default.value, value)),
        Some(None) => false,
    }
}

/// Parses a default; its origin is its text.
pub fn parse(text: &str) -> Option<Node> {
    let source = Arc::new(YamlSource { name: "verl's defaults".into(), text: format!("x: {text}") });
    let node = yaml::parse(&source).ok()?.get("x").cloned()?;
    Some(Node { origin: Origin::Override(Arc::from(text)), ..node })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_release_is_the_nearest_edition() {
        for (name, found) in [
            ("2026-08", Some(("2026-08", None))),
            ("0.3", Some(("2025-06", Some("0.3")))),
            ("v0.4.1", Some(("2025-06", Some("0.4")))),
            ("0.7.0", Some(("2026-01", Some("0.7")))),
            ("0.9.1", Some(("2026-08", Some("0.9")))),
            ("0.10", None),
            ("0", None),
            ("newest", None),
        ] {
            assert_eq!(find(name), found, "{name}");
        }
    }
}
