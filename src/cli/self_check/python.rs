//! Python for rewards: a worker starts as in a run, and reports its interpreter.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::finding::Finding;
use burnish_reward::python::{CodeSource, Pool, PoolOptions};

const CODE: &str = include_str!("python.py");
/// Time limit of the start and of the call.
const LIMIT: Duration = Duration::from_secs(3);

/// `python`: the interpreter, as `reward.python` names it.
pub(super) fn check(python: &str) -> Finding {
    match describe(python) {
        Ok(found) => Finding::ok(found),
        Err(error) => Finding::problem(
            format!("{error:#}"),
            "only rewards, tools and trackers written in Python need it: install Python 3.8 or later, or set reward.python=PATH",
        ),
    }
}

fn describe(python: &str) -> Result<String> {
    let source = CodeSource::BuiltIn { name: "self-check", code: CODE, functions: &["describe"] };
    let options =
        PoolOptions { python: python.to_owned(), num_workers: 1, timeout: LIMIT, start_timeout: LIMIT, ..PoolOptions::default() };
    let reply = Pool::start(source, options)?.call(0, &json!({}))?;
    let text = |name: &str| reply["value"][name].as_str().map(str::to_owned).with_context(|| format!("no {name}: {reply}"));
    let numpy = match &reply["value"]["numpy"] {
        Value::String(version) => format!("NumPy {version}"),
        _ => "without NumPy".to_owned(),
    };
    Ok(format!("{} is Python {}, {numpy}; a worker starts", text("path")?, text("version")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_starts_and_another_program_is_a_problem() {
        let found = check("python3");
        assert!(found.is_ok() && found.found.contains("is Python 3."), "{found:?}");
        for (python, part) in [("/no/such/python", "cannot start"), ("false", "")] {
            let found = check(python);
            assert!(!found.is_ok() && found.found.contains(part), "{found:?}");
        }
    }
}
