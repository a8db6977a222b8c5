//! Every suggestion of an error, typed, gets past that error.

use std::collections::BTreeSet;

use burnish::cli::choices;
use burnish::config::kinds::{ConfigKind, KINDS};
use burnish::config::{ConfigError, Problem, Request, Value};

/// The number of wrong overrides in one load: an error reports all of them.
const TOGETHER: usize = 40;

/// Returns the problems of overrides of the defaults of one kind, each with its advice.
fn problems(known: &ConfigKind, overrides: Vec<String>) -> Vec<String> {
    let request = Request { overrides, ..Request::built_in(known.file) };
    let failed = known.load(&request, &choices(known.kind)).err();
    let text = |problem: Problem| ConfigError { problems: vec![problem] }.to_string();
    failed.map(|error| error.problems.into_iter().map(text).collect()).unwrap_or_default()
}

/// Returns the override that a message suggests in place of KEY=VALUE, if it names a whole one.
fn suggested(message: &str, key: &str, value: &str) -> Option<String> {
    if let Some((_, suggestion)) = message.split_once("did you mean `") {
        let suggestion = suggestion.split('`').next()?;
        return Some(if message.contains("no such key") {
            format!("{suggestion}={value}")
        } else {
            format!("{key}={suggestion}")
        });
    }
    let (_, advice) = message.split_once("help: write ")?;
    let advice = advice.split(['\n', ' ', ';', ',']).next()?;
    (advice.contains('=') && !advice.contains(['…', 'N'])).then(|| advice.to_owned())
}

#[test]
fn every_suggestion_when_typed_gets_past_the_error() {
    let (mut seen, mut tried) = (BTreeSet::new(), 0);
    for known in KINDS {
        let defaults = known.defaults().unwrap();
        let is_setting = |key: &String| !matches!(defaults.value(key), Some(Value::Map(_) | Value::List(_)) | None);
        let keys: Vec<String> = defaults.keys().into_iter().filter(|key| is_setting(key) && seen.insert(key.clone())).collect();
        for keys in keys.chunks(TOGETHER) {
            for (end, value) in [("x", "1"), ("", "zz zz"), ("", "-7")] {
                let refused = problems(known, keys.iter().map(|key| format!("{key}{end}={value}")).collect());
                let of_key = |key: &String| refused.iter().find(|problem| problem.contains(&format!("`{key}{end}`")));
                let mut advised = vec![];
                for key in keys {
                    let Some(problem) = of_key(key) else {
                        // Mappings of arguments take any name; generation names keys that it does not read as ignored.
                        let is_open = key.contains("_kwargs.") || known.name == "generate";
                        assert!(end.is_empty() || is_open, "{}: {key}{end} is accepted", known.name);
                        continue;
                    };
                    match suggested(problem, key, value) {
                        Some(advice) => advised.push((problem, advice)),
                        None => {
                            assert!(!problem.contains("no such key"), "{}: {key}{end} without advice:\n{problem}", known.name)
                        }
                    }
                }
                tried += advised.len();
                let followed = problems(known, advised.iter().map(|(_, advice)| advice.clone()).collect());
                for (problem, advice) in advised {
                    let first = problem.lines().next().unwrap_or_default();
                    let again = followed.iter().find(|other| other.starts_with(first));
                    assert!(again.is_none(), "{}: {problem}\nthen {advice}:\n{}", known.name, again.unwrap());
                }
                let unknown = followed.iter().find(|problem| problem.contains("no such key"));
                assert!(unknown.is_none(), "{}: {}", known.name, unknown.unwrap());
            }
        }
    }
    assert!(tried > 300, "{tried} suggestions");
}
