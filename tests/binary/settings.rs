//! Every setting of every command has an effect. If only this setting is changed, it changes the metrics of a run or the output
//! that `tests/data/settings.yaml` declares, is refused by name, or is reported as ignored. An ignored setting has its effect
//! together with the settings that the table names. This test fails for a new setting without an effect, and for a setting that
//! is reported as ignored but changes something.
//!
//! Ignored settings are most of them, and change nothing. One run therefore shows all that it ignores; each of the others has its
//! own run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};

use burnish::cli::choices;
use burnish::config::Request;
use burnish::config::kinds::{ConfigKind, KINDS};
use rayon::prelude::*;
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::common::{rows, trainer};

/// A command and its settings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    command: Vec<String>,
    schema: String,
    /// The configuration of the runs.
    config: String,
    /// The setting of the folder for a run's files, and the file in it if the setting names a file.
    folder: (String, String),
    base: Vec<String>,
    others: BTreeMap<String, Vec<String>>,
    contexts: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    sections: BTreeMap<String, Vec<String>>,
    keys: BTreeMap<String, Setting>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Setting {
    to: Value,
    with: Vec<String>,
    sees: Sees,
    /// The metric that changes where the setting has its effect; empty for any.
    moves: String,
    /// Further values that must have an effect.
    more: Vec<FurtherValue>,
    /// The places in which the setting has no effect after all, and the reasons.
    but: BTreeMap<String, String>,
}

/// Another value of a setting, and the metric that it changes.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FurtherValue {
    to: Value,
    #[serde(default)]
    with: Vec<String>,
    moves: String,
}

/// The output that shows the effect of a setting, if not the metrics.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sees {
    #[default]
    Numbers,
    Page,
    Files,
    Refused,
    Fails(String),
    /// The reason why a small run cannot show the effect.
    Nothing(String),
}

/// The results of a run.
struct Seen {
    code: Option<i32>,
    stderr: String,
    numbers: String,
    rows: Vec<Map<String, Value>>,
    files: BTreeMap<String, u64>,
}

impl Seen {
    /// The values of a metric, one for each row that has it.
    fn values(&self, metric: &str) -> Vec<&Value> {
        self.rows.iter().filter_map(|row| row.get(metric)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Named,
    Refused,
    Failed,
    Shown,
    Declared,
}

/// The runs of one command; those without a change are made once.
struct Runs<'a> {
    spec: &'a Spec,
    known: &'static ConfigKind,
    plain: Mutex<HashMap<Vec<String>, Arc<Seen>>>,
    pages: Mutex<HashMap<Vec<String>, String>>,
    /// For each list of overrides, the settings that a run with all of their changes ignores.
    ignored: HashMap<Vec<String>, HashSet<String>>,
}

impl Runs<'_> {
    fn command(&self, folder: &Path, overrides: &[String]) -> std::process::Command {
        let here = |text: &str| text.replace("{folder}", &folder.display().to_string());
        let mut command = trainer(&[]);
        command.args(&self.spec.command).args(["--config", &self.spec.config]).args(overrides.iter().map(|o| here(o)));
        command.arg(format!("{}={}{}", self.spec.folder.0, folder.display(), self.spec.folder.1));
        // As many runs as cores at the same time.
        command.env("RAYON_NUM_THREADS", "1");
        command
    }

    fn run(&self, overrides: &[String]) -> Seen {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let output = self.command(folder, overrides).output().unwrap();
        let clean = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder.display().to_string(), "FOLDER");
        let (mut numbers, mut all) = (String::new(), Vec::new());
        if folder.join("metrics.jsonl").exists() {
            for (step, mut row) in rows(folder) {
                row.retain(|name, _| !name.contains("latency"));
                all.push(row.clone());
                numbers += &format!("{step} {}\n", Value::Object(row));
            }
        }
        if self.spec.command == ["eval"] {
            numbers += &clean(&output.stdout);
        }
        let mut files = BTreeMap::new();
        list(folder, folder, &mut files);
        let generated =
            files.iter().filter(|(name, _)| ["val/", "responses.", "scores."].iter().any(|start| name.starts_with(start)));
        numbers += &format!("{:?}", generated.collect::<Vec<_>>());
        Seen { code: output.status.code(), stderr: clean(&output.stderr), numbers, rows: all, files }
    }

    fn plain(&self, overrides: &[String]) -> Arc<Seen> {
        if let Some(seen) = self.plain.lock().unwrap().get(overrides) {
            return seen.clone();
        }
        let seen = Arc::new(self.run(overrides));
        self.plain.lock().unwrap().entry(overrides.to_vec()).or_insert(seen).clone()
    }

    /// The [`page`](Self::page) of a run without a change, which is written once.
    fn plain_page(&self, overrides: &[String]) -> String {
        if let Some(page) = self.pages.lock().unwrap().get(overrides) {
            return page.clone();
        }
        let page = self.page(overrides);
        self.pages.lock().unwrap().entry(overrides.to_vec()).or_insert(page).clone()
    }

    /// The page of `--dry-run`, without measurements of the process that writes it.
    fn page(&self, overrides: &[String]) -> String {
        let folder = tempfile::tempdir().unwrap();
        // A generation has nothing to measure.
        let plan = if self.spec.schema == "generation" { "--dry-run" } else { "--dry-run=plan" };
        let output = self.command(folder.path(), overrides).arg(plan).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace(&folder.path().display().to_string(), "FOLDER");
        text.lines().filter(|line| !line.contains("process so far") && !line.contains("  peak ")).collect::<Vec<_>>().join("\n")
    }

    /// Returns true if these overrides already give a setting this value.
    fn is_so(&self, overrides: &[String], key: &str, change: &str) -> bool {
        let resolved = |overrides: Vec<String>| {
            let request = Request { config: Some(self.spec.config.clone()), overrides, ..Request::default() };
            let loaded = self.known.load(&request, &choices(self.known.kind)).ok()?;
            Some(loaded.tree.value(key)?.to_yaml())
        };
        let now = resolved(overrides.to_vec());
        now.is_some() && now == resolved([overrides, &[change.to_owned()]].concat())
    }

    /// Returns the settings that a run with all of these changes ignores, if its results equal the run without them. Changes that
    /// the run does not ignore, or refuses, are left out and the rest is run again; if none of them is named, each half is.
    fn ignored_together(&self, overrides: &[String], mut changes: Vec<(String, String)>) -> HashSet<String> {
        while !changes.is_empty() {
            let all = changes.iter().map(|(_, change)| change.clone());
            let seen = self.run(&overrides.iter().cloned().chain(all).collect::<Vec<_>>());
            let before = changes.len();
            match (seen.code, seen.stderr.split_once("error: ")) {
                (Some(0), _) => changes.retain(|(key, _)| names_as_ignored(&seen.stderr, key)),
                (_, Some((_, refusal))) => changes.retain(|(key, _)| !refusal.contains(key)),
                _ => {}
            }
            if changes.len() < before {
                continue;
            }
            if seen.code == Some(0) && seen.numbers == self.plain(overrides).numbers {
                return changes.into_iter().map(|(key, _)| key).collect();
            }
            let half = changes.split_off(before / 2);
            let halves = [changes, half].into_iter().filter(|half| half.len() < before);
            return halves.flat_map(|half| self.ignored_together(overrides, half)).collect();
        }
        HashSet::new()
    }

    /// Returns the effect of changing a setting in addition to `overrides`, or an error without one. `moves`: the metric that must
    /// change; empty for any.
    fn change(&self, key: &str, setting: &Setting, change: &str, overrides: &[String], moves: &str) -> Result<How, String> {
        if self.ignored.get(overrides).is_some_and(|ignored| ignored.contains(key)) {
            return Ok(How::Named);
        }
        let plain = self.plain(overrides);
        let changed_overrides = [overrides, &[change.to_owned()]].concat();
        let changed = self.run(&changed_overrides);
        if names_as_ignored(&changed.stderr, key) {
            return match changed.code == Some(0) && changed.numbers != plain.numbers {
                true => Err("it is named as ignored, but the numbers are others".into()),
                false => Ok(How::Named),
            };
        }
        match (changed.code, &setting.sees) {
            (Some(0), _) => {}
            (_, Sees::Fails(text)) if changed.stderr.contains(text) => return Ok(How::Failed),
            (Some(2), _) if changed.stderr.contains(key) => return Ok(How::Refused),
            _ => return Err(format!("the run fails without its name: {}", changed.stderr)),
        }
        let shows = changed.numbers != plain.numbers
            || match setting.sees {
                Sees::Page => self.plain_page(overrides) != self.page(&changed_overrides),
                Sees::Files => changed.files != plain.files,
                _ => false,
            };
        if !moves.is_empty() {
            let [before, after] = [&*plain, &changed].map(|seen| seen.values(moves));
            if before.is_empty() || before == after {
                return Err(format!("{moves} stays {before:?}"));
            }
        }
        match setting.sees {
            Sees::Nothing(ref why) if why.is_empty() => Err("tests/data/settings.yaml must say why it cannot be seen".into()),
            Sees::Nothing(_) => Ok(How::Declared),
            _ if shows => Ok(How::Shown),
            _ => Err("it changes nothing, and no message reports it".into()),
        }
    }

    /// Returns what to do with a setting that the table does not have. If an entry of a registry reads it, it has its effect
    /// together with that entry.
    fn of_an_entry(&self, key: &str) -> Setting {
        let known = choices(self.known.kind);
        let Some(reader) = known.iter().find(|choice| choice.reads.contains(&key)) else {
            return Setting::default();
        };
        Setting { to: Value::from(0.5), with: vec![format!("{}={}", reader.key, reader.name)], ..Setting::default() }
    }

    fn setting(&self, key: &str) -> Setting {
        self.spec.keys.get(key).cloned().unwrap_or_else(|| self.of_an_entry(key))
    }

    /// The overrides with which a setting has its effect: the overrides of its section, and `with`.
    fn with(&self, key: &str, with: &[String]) -> Vec<String> {
        let spec = self.spec;
        let named = spec.sections.iter().filter(|(prefix, _)| key.starts_with(*prefix)).flat_map(|(_, with)| with);
        let context = |name: &String| if name.contains('=') { vec![name.clone()] } else { spec.contexts[name].clone() };
        named.chain(with).flat_map(context).collect()
    }

    /// Finds the settings that are ignored in each place. Those that need other settings are tried.
    fn find_ignored(&mut self, leaves: &[&String]) {
        let spec = self.spec;
        let tried = |is_base: bool| -> Vec<(String, String)> {
            let change = |key: &String| {
                let setting = self.setting(key);
                let is_tried = match setting.sees {
                    Sees::Refused => false,
                    Sees::Nothing(_) => is_base,
                    _ => true,
                };
                let is_tried = is_tried && !self.with(key, &setting.with).is_empty();
                Some((key.clone(), changed(&spec.schema, key, &setting.to).filter(|_| is_tried)?))
            };
            leaves.iter().filter_map(|key| change(key)).collect()
        };
        let others = spec.others.values().map(|overrides| (overrides, tried(false)));
        let places: Vec<_> = std::iter::once((&spec.base, tried(true))).chain(others).collect();
        let found = places.into_par_iter().map(|(place, tried)| (place.clone(), self.ignored_together(place, tried)));
        self.ignored = found.collect();
    }

    /// All problems with a setting.
    fn problems(&self, key: &str) -> Vec<String> {
        let (spec, setting) = (self.spec, self.setting(key));
        let change = match changed(&spec.schema, key, &setting.to) {
            Some(change) => change,
            None => return vec![format!("{key}: tests/data/settings.yaml must say what to change it to")],
        };
        let with = self.with(key, &setting.with);
        let mut wrong = Vec::new();
        let mut place = |name: &str, overrides: &[String]| -> Option<How> {
            let is_live = name == if with.is_empty() { "base" } else { "with" };
            let moves = if is_live { setting.moves.as_str() } else { "" };
            let result = self.change(key, &setting, &change, overrides, moves);
            if name != "with" && result.is_err() && self.is_so(overrides, key, &change) {
                return None;
            }
            match (&result, setting.but.get(name)) {
                (Err(problem), None) => wrong.push(format!("{change} ({name}): {problem}")),
                (Ok(_), Some(why)) => wrong.push(format!("{change} ({name}): this is not an exception: {why}")),
                _ => {}
            }
            result.ok()
        };
        let base = place("base", &spec.base);
        // For a setting whose effect shows nowhere, more runs give no more information.
        if !matches!(setting.sees, Sees::Refused | Sees::Nothing(_)) {
            for (name, overrides) in &spec.others {
                place(name, overrides);
            }
        }
        let idle = matches!(base, Some(How::Named | How::Refused)) && !matches!(setting.sees, Sees::Refused | Sees::Nothing(_));
        if !with.is_empty() {
            let live = place("with", &[&spec.base[..], &with].concat());
            if live == Some(How::Named) || live == Some(How::Refused) && !matches!(setting.sees, Sees::Refused) {
                wrong.push(format!("{change}: {live:?} with {with:?}, where it should have its effect"));
            }
        } else if idle {
            wrong.push(format!("{change}: {base:?}; tests/data/settings.yaml must say with what it has its effect"));
        }
        for FurtherValue { to, with, moves } in &setting.more {
            let change = changed(&spec.schema, key, to).expect("a value");
            let overrides = [&spec.base[..], &self.with(key, with)].concat();
            match self.change(key, &setting, &change, &overrides, moves) {
                Ok(How::Shown) => {}
                other => wrong.push(format!("{change}: {other:?} with {with:?}, where it should have its effect")),
            }
        }
        wrong
    }
}

/// Every file below `folder` with the hash of its contents; for files that contain times, only the name.
fn list(root: &Path, folder: &Path, files: &mut BTreeMap<String, u64>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, files);
            continue;
        }
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let last = path.file_name().unwrap().to_str().unwrap();
        let mut hasher = DefaultHasher::new();
        match last {
            "metrics.jsonl" | "trainer.log" | "config.yaml" | "phase.json" | "manifest.json" | ".lock" => {}
            "run.json" => {
                let info: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                [&info["project"], &info["experiment"], &info["best"]].map(Value::to_string).hash(&mut hasher);
            }
            _ if last.contains("tfevents") => {}
            _ => std::fs::read(&path).unwrap().hash(&mut hasher),
        }
        let name = if last.contains("tfevents") { "tfevents".to_owned() } else { name };
        files.insert(name, hasher.finish());
    }
}

/// Returns true if a message names the setting as ignored: `ignored: KEY, KEY: reason`, or the list of verl's settings: `these
/// settings are ignored`, and below it `KEY=VALUE, KEY=VALUE: reason`.
fn names_as_ignored(stderr: &str, key: &str) -> bool {
    let ours = stderr.lines().filter_map(|line| line.split_once("ignored: ")).any(|(_, rest)| {
        let keys = rest.split(": ").next().unwrap();
        keys.split(", ").any(|one| one.split('=').next() == Some(key))
    });
    let listed = Regex::new(&format!(r"^  (.*, )?{}=", regex::escape(key))).unwrap();
    let behind = stderr.lines().skip_while(|line| !line.contains("these settings are ignored")).skip(1);
    ours || behind.take_while(|line| line.starts_with("  ")).any(|line| listed.is_match(line))
}

/// The override that gives a setting a value other than its default: `to`, or another of the values that its schema lists.
fn changed(schema: &str, key: &str, to: &Value) -> Option<String> {
    let value = match to {
        Value::String(text) if text.starts_with('+') => return Some(text.clone()),
        Value::String(text) => text.clone(),
        Value::Null => {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("config/schema/{schema}.json"));
            let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let pointer = burnish::config::json_schema::pointer(key);
            let entry = schema.pointer(&pointer).unwrap();
            let alternatives = entry["anyOf"].as_array().cloned().unwrap_or_else(|| vec![entry.clone()]);
            let listed = alternatives.iter().filter_map(|one| one["enum"].as_array()).flatten();
            let other = listed.into_iter().find(|one| **one != entry["default"] && !one.is_null())?;
            other.as_str().map_or(other.to_string(), str::to_owned)
        }
        other => other.to_string(),
    };
    Some(format!("{key}={value}"))
}

#[test]
fn every_setting_does_something_or_is_named() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/settings.yaml");
    let table: Value = serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let specs: Vec<Spec> = serde_json::from_value(table).unwrap();
    assert_eq!(specs.len(), KINDS.len(), "every command has its settings in the table");
    // A part of the names of settings: those alone are tried.
    let only = std::env::var("BURNISH_SETTINGS").ok();
    let mut wrong: Vec<String> = Vec::new();
    for spec in &specs {
        let known = KINDS.iter().find(|known| known.file == spec.schema).unwrap();
        let mut runs = Runs { spec, known, plain: Mutex::default(), pages: Mutex::default(), ignored: HashMap::new() };
        for overrides in std::iter::once(&spec.base).chain(spec.others.values()) {
            let plain = runs.plain(overrides);
            assert_eq!(plain.code, Some(0), "{}", plain.stderr);
        }
        let defaults = known.defaults().unwrap();
        let keys = defaults.keys();
        let is_leaf = |key: &&String| !keys.iter().any(|other| other.starts_with(&format!("{key}.")));
        let leaves: Vec<&String> = keys.iter().filter(is_leaf).filter(|key| **key != spec.folder.0).collect();
        let strangers = spec.keys.keys().filter(|key| !leaves.contains(key));
        wrong.extend(strangers.map(|key| format!("{key} of tests/data/settings.yaml is not a setting of {}", spec.schema)));
        let leaves: Vec<&String> = leaves.into_iter().filter(|key| only.as_ref().is_none_or(|part| key.contains(part))).collect();
        runs.find_ignored(&leaves);
        let found: Vec<Vec<String>> = leaves.par_iter().map(|key| runs.problems(key)).collect();
        wrong.extend(found.into_iter().flatten().map(|problem| format!("trainer {}: {problem}", spec.command.join(" "))));
    }
    assert!(wrong.is_empty(), "{} settings:\n{}", wrong.len(), wrong.join("\n"));
}

/// Neither the repository's YAML files nor verl's defaults contain ignored settings.
#[test]
fn nothing_is_named_as_ignored_that_nobody_set() {
    let small = [
        "actor_rollout_ref.model.path=data/arithmetic/model",
        "data.train_files=tests/data/sums.jsonl",
        "data.val_files=tests/data/sums.jsonl",
        "data.train_batch_size=8",
        "data.max_prompt_length=16",
        "data.max_response_length=8",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        "actor_rollout_ref.actor.use_dynamic_bsz=true",
        "actor_rollout_ref.rollout.n=2",
        "algorithm.adv_estimator=grpo",
        "trainer.device=cpu",
    ];
    let recipes = ["dapo", "ppo", "random_reward_model", "reward_model", "rloo_trl"];
    let recipes = recipes.map(|name| (vec![], format!("recipes/arithmetic/{name}.yaml"), &[][..]));
    let presets = ["2025-06", "2026-01", "2026-08"].map(|edition| (vec![], format!("verl/{edition}/ppo_trainer"), &small[..]));
    let supervised = ["recipes/arithmetic/sft.yaml", "config/sft_trainer.yaml"];
    let supervised = supervised.map(|config| (vec!["sft"], config.to_owned(), &[][..]));
    let rm = ["config/rm_trainer.yaml", "recipes/arithmetic/rm.yaml", "recipes/arithmetic/prm.yaml"];
    let rm = rm.map(|config| (vec!["rm"], config.to_owned(), &[][..]));
    let plain =
        [(vec![], "config/ppo_trainer.yaml".to_owned(), &[][..]), (vec!["dpo"], "config/dpo_trainer.yaml".to_owned(), &[])];
    for (command, config, overrides) in recipes.into_iter().chain(presets).chain(supervised).chain(rm).chain(plain) {
        let mut run = trainer(&command);
        let output = run.args(["--config", &config]).args(overrides).arg("--dry-run=plan").output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{config}: {messages}");
        assert!(!messages.contains("ignored: "), "{config}: {messages}");
    }
}
