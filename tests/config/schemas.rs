//! The JSON Schemas for editors are up to date, fit every YAML file of the repository, and catch mistakes.
//!
//! `scripts/bless` rewrites `config/schema/*.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use burnish::cli::choices;
use burnish::config::json_schema::{packages, pointer, schema};
use burnish::config::kinds::{ConfigKind, KINDS, infer};
use burnish::config::{Request, complete};
use regex::Regex;
use serde_json::{Value, json};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn generated(known: &ConfigKind) -> Value {
    schema(known, &choices(known.kind)).unwrap()
}

#[test]
fn schemas_are_up_to_date() {
    for known in KINDS {
        let path = root().join(format!("config/schema/{}.json", known.file));
        let text = format!("{:#}\n", generated(known));
        if std::env::var_os("BURNISH_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == text, "{} is out of date: run scripts/bless", path.display());
    }
}

/// The problems of a value; empty if it fits. Supports the part of JSON Schema that the generated schemas use.
fn problems(at: &str, value: &Value, schema: &Value) -> Vec<String> {
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|schema| problems(at, value, schema).is_empty());
        return if fits { vec![] } else { vec![format!("{at}: {value} fits none of {any:?}")] };
    }
    let (mut wrong, mut otherwise) = (vec![], vec![]);
    let mut check = |holds: bool, label: &str| {
        if !holds {
            wrong.push(format!("{at}: {value}: {label}"));
        }
    };
    for (keyword, expected) in schema.as_object().expect("a schema is an object") {
        let number = || value.as_f64().zip(expected.as_f64());
        match keyword.as_str() {
            "type" => check(is_a(value, expected.as_str().unwrap()), &format!("not of type {expected}")),
            "enum" => check(expected.as_array().unwrap().iter().any(|one| same(one, value)), &format!("not one of {expected}")),
            "minimum" => check(number().is_none_or(|(x, bound)| x >= bound), "too small"),
            "exclusiveMinimum" => check(number().is_none_or(|(x, bound)| x > bound), "too small"),
            "maximum" => check(number().is_none_or(|(x, bound)| x <= bound), "too large"),
            "exclusiveMaximum" => check(number().is_none_or(|(x, bound)| x < bound), "too large"),
            "pattern" => {
                let pattern = Regex::new(expected.as_str().unwrap()).unwrap();
                check(value.as_str().is_none_or(|text| pattern.is_match(text)), &format!("does not match {expected}"));
            }
            "minItems" | "maxItems" => {
                check(value.as_array().is_none_or(|items| items.len() as u64 == expected.as_u64().unwrap()), "length")
            }
            "required" => {
                check(expected.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some()), "lacks a key")
            }
            "if" if problems(at, value, expected).is_empty() => {}
            "if" => otherwise = problems(at, value, &schema["else"]),
            "else" | "items" | "properties" | "additionalProperties" | "description" | "default" | "title" | "$schema" => {}
            other => panic!("the checker does not know `{other}`"),
        }
    }
    wrong.append(&mut otherwise);
    for (index, item) in value.as_array().into_iter().flatten().enumerate().filter(|_| schema["items"].is_object()) {
        wrong.extend(problems(&format!("{at}.{index}"), item, &schema["items"]));
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        match &schema["properties"][name] {
            Value::Null if schema["additionalProperties"] == json!(false) => wrong.push(format!("{at}.{name}: no such key")),
            Value::Null => {}
            below => wrong.extend(problems(&format!("{at}.{name}"), value, below)),
        }
    }
    wrong
}

/// Compares values; 0 and 0.0 are equal in JSON Schema.
fn same(a: &Value, b: &Value) -> bool {
    a == b || a.is_number() && a.as_f64() == b.as_f64()
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|x| x.fract() == 0.0),
        "number" => value.is_number(),
        other => panic!("the checker does not know the type {other}"),
    }
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The files in `config/verl` are generated, and not meant to be edited.
        if path.is_dir() && !path.ends_with("config/verl") {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

/// The schema of a file, relative to the root, with a pointer to the part that a group file fills.
fn schema_of(file: &Path) -> String {
    let relative = file.strip_prefix(root()).unwrap();
    let name = format!("built-in {}", relative.display());
    for known in KINDS {
        let parts = packages(&known.defaults().unwrap());
        if let Some((_, package)) = parts.iter().find(|(file, package)| *file == name && !package.is_empty()) {
            return format!("config/schema/{}.json#{}", known.file, pointer(package));
        }
    }
    let request = Request { config: Some(file.display().to_string()), ..Request::default() };
    format!("config/schema/{}.json", infer(&request).unwrap().file)
}

/// Every file names its schema for the editor, and fits it.
#[test]
fn every_file_points_at_the_schema_that_it_fits() {
    let mut files = vec![];
    yaml_files(&root().join("config"), &mut files);
    yaml_files(&root().join("recipes"), &mut files);
    assert!(files.len() > 12);
    for file in files {
        let expected = schema_of(&file);
        let inside = file.strip_prefix(root()).unwrap();
        let up = |path: &Path| "../".repeat(path.components().count() - 1);
        let relative = match inside.strip_prefix("config") {
            Ok(inside) => up(inside) + &expected["config/".len()..],
            Err(_) => up(inside) + &expected,
        };
        let header = format!("# yaml-language-server: $schema={relative}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.lines().take(2).any(|line| line == header),
            "{}: its first or second line must be\n{header}",
            file.display()
        );

        let (path, part) = expected.split_once('#').unwrap_or((&expected, ""));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(root().join(path)).unwrap()).unwrap();
        let value: Value = serde_yaml::from_str(&text).unwrap();
        let wrong = problems("", &value, schema.pointer(part).expect("the part exists"));
        assert!(wrong.is_empty(), "{}: {wrong:#?}", file.display());
    }
}

#[test]
fn mistakes_do_not_fit() {
    let schema = generated(&KINDS[0]);
    let fits = |yaml: &str| problems("", &serde_yaml::from_str(yaml).unwrap(), &schema).is_empty();
    assert!(fits(
        "{defaults: [/ppo_trainer, _self_], algorithm: {adv_estimator: grpo}, data: {seed: null, train_files: [a, b]}}"
    ));
    assert!(fits("algorithm: {adv_estimator: my_own, custom_adv_estimator: {path: my_own.py}}"));
    assert!(fits("{trainer: {logger: console, device: 'wgpu:3'}, data: {max_prompt_length: '${data.max_response_length}'}}"));
    assert!(fits("actor_rollout_ref: {actor: {kl_loss_type: k3+, optim: {betas: [0.9, 0.95], lr: 1}}}"));
    for wrong in [
        "algorithm: {adv_estimatr: grpo}",
        "algorithm: {adv_estimator: grop}",
        "data: {max_prompt_length: 0}",
        "data: {max_prompt_length: 1.5}",
        "data: {shuffle: 'yes'}",
        "actor_rollout_ref: {actor: {optim: {betas: [0.9]}}}",
        "actor_rollout_ref: {actor: {optim: {betas: [0.9, 1]}}}",
        "actor_rollout_ref: {rollout: {top_p: 0}}",
        "trainer: {device: gpu}",
        "trainer: {logger: [consle]}",
    ] {
        assert!(!fits(wrong), "{wrong}");
    }
}

/// Every value that completion offers and a schema lists is accepted, so comments are correct.
#[test]
fn every_value_that_is_offered_is_accepted() {
    let mut offered = 0;
    for known in KINDS {
        let keys = known.defaults().unwrap();
        for key in keys.keys() {
            let words = complete::complete(known, &choices(known.kind), &format!("{key}=")).unwrap();
            for word in words {
                offered += 1;
                let request = Request { overrides: vec![word.clone()], config: Some(known.file.into()), ..Request::default() };
                let error = known.load(&request, &choices(known.kind)).err();
                let wrong = error
                    .iter()
                    .flat_map(|error| &error.problems)
                    .find(|problem| problem.key == key && problem.message.contains("must be"));
                assert!(wrong.is_none(), "{word}: {}", wrong.unwrap());
            }
        }
    }
    assert!(offered > 150, "{offered}");
}

/// The comment of a key, its schema for editors, and the check of a run agree. For every key with numbers, the edges of its range
/// are accepted, and values just outside are refused. All keys are set at once, since all errors are reported at once.
#[test]
fn every_range_is_what_is_checked() {
    for known in KINDS {
        let schema = generated(known);
        let defaults = known.defaults().unwrap();
        let leaves =
            defaults.keys().into_iter().filter(|key| !matches!(defaults.value(key), Some(burnish::config::Value::Map(_))));
        let of_keys = leaves.map(|key| (schema.pointer(&pointer(&key)).unwrap().clone(), key));
        let numeric: Vec<(Value, String)> = of_keys.filter(|(schema, _)| takes_numbers(schema)).collect();
        let (mut refused, mut accepted) = (BTreeSet::new(), BTreeSet::new());
        for (written, value) in tried(&schema) {
            let overrides = numeric.iter().map(|(_, key)| format!("{key}={written}")).collect();
            let request = Request { overrides, config: Some(known.file.into()), ..Request::default() };
            let found = known.load(&request, &choices(known.kind)).err().map(|error| error.problems);
            let found = found.unwrap_or_default();
            for (schema, key) in &numeric {
                let expected = match &value {
                    Some(value) => problems(key, value, schema).is_empty(),
                    None => lists_infinity(schema["description"].as_str().unwrap(), &written),
                };
                // If an item has the wrong type, the problem names the item.
                let is_here = |at: &str| at == key || at.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.'));
                let is_bound = |message: &str| message.contains("must ") && !message.contains("low below high");
                let wrong = found.iter().find(|problem| is_here(&problem.key) && is_bound(&problem.message));
                // Null is "unset" for some settings of verl, and then the default applies.
                if !expected && value == Some(Value::Null) {
                    continue;
                }
                assert_eq!(wrong.is_none(), expected, "{}: {key}={written}: {wrong:?}\n{schema}", known.file);
                assert!(wrong.is_none_or(|problem| problem.origin.is_some()), "{key}={written} has no origin");
                if expected { &mut accepted } else { &mut refused }.insert(key);
            }
        }
        assert!(numeric.len() >= if known.file == "evaluation" { 9 } else { 15 }, "{}: {}", known.file, numeric.len());
        assert_eq!((refused.len(), accepted.len()), (numeric.len(), numeric.len()), "{}", known.file);
    }
}

fn takes_numbers(schema: &Value) -> bool {
    let is_number = |one: &Value| ["integer", "number"].iter().any(|kind| one["type"] == *kind);
    let takes = |one: &Value| is_number(one) || is_number(&one["items"]);
    takes(schema) || schema["anyOf"].as_array().is_some_and(|any| any.iter().any(takes))
}

/// Returns the values to try for a key, as overrides and in JSON, which has neither NaN nor infinity. Each bound of a schema, the
/// numbers next to it, values that are not numbers, and lists of these.
fn tried(schema: &Value) -> Vec<(String, Option<Value>)> {
    let mut bounds = BTreeSet::new();
    walk(schema, &mut |name, value| {
        let is_bound = ["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"].contains(&name);
        bounds.extend(value.as_i64().filter(|_| is_bound));
        bounds.extend(value.as_array().filter(|_| name == "enum").into_iter().flatten().filter_map(Value::as_i64));
    });
    let mut values: Vec<Value> = bounds.iter().flat_map(|bound| [bound - 1, *bound, bound + 1]).map(Value::from).collect();
    values.extend(bounds.iter().flat_map(|bound| [*bound as f64 - 0.25, *bound as f64 + 0.25]).map(Value::from));
    values.extend([Value::Null, json!(true), json!("word")]);
    let in_json = values.iter().map(|value| (value.to_string().replace('"', ""), Some(value)));
    let beyond = ["nan", "inf", "-inf"].map(|written| (written.to_owned(), None));
    let tried: BTreeMap<String, Option<&Value>> = in_json.chain(beyond).collect();
    let alone = tried.iter().map(|(written, value)| (written.clone(), value.cloned()));
    let twice = tried.iter().map(|(written, value)| (format!("[{written},{written}]"), value.map(|value| json!([value, value]))));
    alone.chain(twice).chain([("[]".to_owned(), Some(json!([]))), ("[1]".to_owned(), Some(json!([1])))]).collect()
}

/// Returns true if a description lists this number, which JSON does not have, or a list of it.
fn lists_infinity(description: &str, written: &str) -> bool {
    let is_range =
        written.starts_with('[') && written.contains("inf") && description.ends_with(" list of two numbers or infinities");
    is_range || description.contains(&format!("| {}", written.replace("inf", ".inf")))
}

/// Calls `visit` with every entry of every object.
fn walk(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    for (name, value) in value.as_object().into_iter().flatten() {
        visit(name, value);
        walk(value, visit);
    }
    value.as_array().into_iter().flatten().for_each(|item| walk(item, visit));
}
