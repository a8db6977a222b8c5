//! An old and a new name of one setting together. Each has a value, is null, or is absent, in one file, in two, or on the command
//! line.

use burnish::config::compat::{Kind, NULL_IS_UNSET, alike, fits_key, row};
use burnish::config::{ConfigError, Request, Value, resolve};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;

use super::built_in;
use burnish::config::compat::editions;

/// Settings whose null has no effect in verl if the old name has a value.
const YIELDS: &[&str] = &["**.*micro_batch_size_per_gpu"];
/// The values of the two names.
const OLD: &str = "value-of-the-old-name";
const NEW: &str = "value-of-the-new-name";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    OneFile,
    /// The file with the new name comes either first or second.
    TwoFiles(bool),
    Line(bool),
    FileAndLine,
}
use Layout::{FileAndLine, Line, OneFile, TwoFiles};

/// One old key of every renaming row, with its new one.
fn pairs(kind: Kind) -> Vec<(String, String)> {
    let tree = built_in(kind);
    let wild = include_str!("../../data/verl-wild-keys.txt").lines();
    let known = editions::keys().filter(|key| Kind::of_verl_file(key.config) == kind).map(|key| key.key);
    let mut pairs = BTreeMap::new();
    for key in known.chain(wild) {
        let Some(row) = row(kind, key, tree.root()) else { continue };
        // Values of Megatron's names of matrices are translated.
        let is_setting =
            |to: &String| tree.value(to).is_some_and(|value| !matches!(value, Value::Map(_))) && !key.contains(".lora.");
        if let Some(to) = row.target.filter(is_setting) {
            pairs.entry((row.pattern, to.clone())).or_insert((key.to_owned(), to));
        }
    }
    pairs.into_values().collect()
}

fn nested(key: &str, value: &str) -> String {
    let parts: Vec<&str> = key.split('.').collect();
    parts.iter().rev().fold(value.to_owned(), |inside, part| format!("{{{part}: {inside}}}"))
}

/// One file with both keys: the mappings that they share are written once.
fn together(old: (&str, &str), new: (&str, &str)) -> String {
    let mut root = serde_json::json!({});
    for (key, text) in [old, new] {
        let mut at = &mut root;
        for part in key.split('.') {
            at = &mut at[part];
        }
        *at = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    }
    root.to_string()
}

fn read(
    kind: Kind,
    folder: &Path,
    layout: Layout,
    old: (&str, Option<&str>),
    new: (&str, Option<&str>),
) -> Result<(Value, Vec<String>), ConfigError> {
    let base = kind.default_file();
    let file = |name: &str, defaults: &str, body: &str| {
        // A mapping on one line is valid YAML at any indentation.
        let entries: serde_json::Value = serde_yaml::from_str(body).unwrap();
        let lines: Vec<String> = entries.as_object().unwrap().iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
        std::fs::write(folder.join(name), format!("defaults: [{defaults}, _self_]\n{}", lines.concat())).unwrap();
    };
    let body = |(key, value): (&str, Option<&str>)| value.map_or_else(|| "{}".to_owned(), |value| nested(key, value));
    let word = |(key, value): (&str, Option<&str>)| value.map(|value| format!("++{key}={value}"));
    let mut overrides = vec![];
    match layout {
        OneFile => {
            let both = match (old.1, new.1) {
                (Some(a), Some(b)) => together((old.0, a), (new.0, b)),
                _ => body(if old.1.is_some() { old } else { new }),
            };
            file("run.yaml", &format!("/{base}"), &both);
        }
        TwoFiles(new_first) => {
            let [first, second] = if new_first { [new, old] } else { [old, new] };
            file("first.yaml", &format!("/{base}"), &body(first));
            file("run.yaml", "first", &body(second));
        }
        Line(new_first) => {
            file("run.yaml", &format!("/{base}"), "{}");
            overrides = [word(old), word(new)].into_iter().flatten().collect();
            if new_first {
                overrides.reverse();
            }
        }
        FileAndLine => {
            file("run.yaml", &format!("/{base}"), &body(new));
            overrides.extend(word(old));
        }
    }
    let config = Some(folder.join("run.yaml").display().to_string());
    let resolved = resolve(kind, &Request { config, overrides, ..Request::default() })?;
    if !resolved.problems.is_empty() {
        return Err(ConfigError { problems: resolved.problems });
    }
    let value = resolved.tree.value(new.0).cloned().unwrap_or(Value::Null);
    Ok((value, resolved.renamed.into_iter().map(|one| one.from).collect()))
}

/// The new name wins, or an error names both; a value under the old name alone is used, and named.
#[test]
fn an_old_name_never_beats_a_new_one_in_silence() {
    for kind in [Kind::Rl, Kind::Sft] {
        let pairs = pairs(kind);
        assert!(!pairs.is_empty());
        let wrong: Vec<String> = pairs.par_iter().flat_map_iter(|(old, new)| problems(kind, old, new)).collect();
        assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    }
}

fn problems(kind: Kind, old: &str, new: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let fits = |patterns: &[&str]| patterns.iter().any(|pattern| fits_key(pattern, new));
    let unset = burnish::config::resolve(kind, &Request::default()).unwrap().tree.value(new).cloned().unwrap_or(Value::Null);
    let mut wrong = vec![];
    for layout in [OneFile, TwoFiles(true), TwoFiles(false), Line(true), Line(false), FileAndLine] {
        for (of_old, of_new) in [
            (Some(OLD), Some(NEW)),
            (Some(OLD), Some("null")),
            (Some(OLD), None),
            (Some("null"), Some(NEW)),
            (Some("null"), None),
        ] {
            // A name without a folder occurs in one place only.
            if of_new.is_none() && ![OneFile, Line(true)].contains(&layout) {
                continue;
            }
            let null = if fits(NULL_IS_UNSET) { unset.clone() } else { Value::Null };
            let text = |text: &str| if text == "null" { null.clone() } else { Value::Text(text.into()) };
            let yields = of_new == Some("null") && of_old == Some(OLD) && (fits(YIELDS) || fits(NULL_IS_UNSET));
            let case = format!("{old}={of_old:?} {new}={of_new:?} {layout:?}");
            match read(kind, folder.path(), layout, (old, of_old), (new, of_new)) {
                Err(error) => {
                    let error = error.to_string();
                    let is_conflict = of_old == Some(OLD) && of_new.is_some() && !yields;
                    if !(is_conflict && error.contains(old) && error.contains(new) && error.contains("two values")) {
                        wrong.push(format!("{case}: {error}"));
                    }
                }
                Ok((value, renamed)) => {
                    let expected = match (of_old, of_new) {
                        (Some(old), _) if yields => vec![text(old), null.clone()],
                        (_, Some(new)) => vec![text(new)],
                        (Some("null"), None) => vec![unset.clone(), null.clone()],
                        (Some(old), None) => vec![text(old)],
                        (None, None) => vec![],
                    };
                    if !expected.iter().any(|expected| alike(expected, &value)) {
                        wrong.push(format!("{case}: it is {}", value.to_yaml()));
                    }
                    if of_old == Some(OLD) && !renamed.iter().any(|from| from == old) && !alike(&value, &Value::Text(NEW.into()))
                    {
                        wrong.push(format!("{case}: the old name is not mentioned"));
                    }
                }
            }
        }
    }
    wrong
}
