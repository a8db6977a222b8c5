//! `trainer self-check`: its checks, and their lines.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::super::version;
use super::finding::Finding;
use super::{determinism, kernels, machine, python};

#[derive(Args)]
pub(crate) struct SelfCheckArgs {
    /// Folder of a run, for the check of the disk; it need not exist
    #[arg(long, value_name = "FOLDER", default_value = "checkpoints")]
    folder: PathBuf,
    /// Python interpreter of rewards (reward.python)
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: String,
    /// Leave this check out
    #[arg(long, value_name = "CHECK", value_parser = PossibleValuesParser::new(CHECKS.iter().map(|check| check.name)))]
    skip: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

/// A check, and the function that makes it.
struct Check {
    name: &'static str,
    run: fn(&SelfCheckArgs) -> Finding,
}

/// The checks, in the order of the output.
const CHECKS: &[Check] = &[
    Check { name: "program", run: |_| Finding::ok(version::program()) },
    Check { name: "features", run: |_| Finding::ok(version::features()) },
    Check { name: "kernels", run: |_| kernels::check(kernels::OPERATIONS, kernels::GOLDENS) },
    Check { name: "determinism", run: |_| determinism::check(determinism::step) },
    Check { name: "threads", run: |_| machine::threads() },
    Check { name: "memory", run: |_| machine::memory_limit() },
    Check { name: "disk", run: |args| machine::disk(&args.folder) },
    Check { name: "python", run: |args| python::check(&args.python) },
    Check { name: "devices", run: |_| machine::devices() },
];

/// Makes the checks and prints each when it is done.
///
/// # Errors
/// If a check finds a problem.
pub(crate) fn run(args: &SelfCheckArgs) -> Result<(), CliError> {
    let selected = CHECKS.iter().filter(|check| !args.skip.iter().any(|name| name == check.name));
    let mut problems = vec![];
    for check in selected {
        let begun = Instant::now();
        let finding = (check.run)(args);
        match args.json.json {
            true => print_rows([row(check.name, &finding, begun.elapsed().as_secs_f64())])?,
            false => print(&line(check.name, &finding))?,
        }
        if !finding.is_ok() {
            problems.push(check.name);
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(CliError::Run(format!("the self-check found a problem: {}", problems.join(", ")))),
    }
}

fn row(name: &str, finding: &Finding, seconds: f64) -> Value {
    json!({
        "check": name,
        "ok": finding.is_ok(),
        "found": finding.found,
        "advice": finding.advice,
        "seconds": (seconds * 1e3).round() / 1e3,
    })
}

/// Returns the line of a check. A message of several lines, such as Python's, is put on one.
fn line(name: &str, finding: &Finding) -> String {
    let state = if finding.is_ok() { "ok" } else { "problem" };
    let advice = finding.advice.as_ref().map_or(String::new(), |advice| format!(" → {advice}"));
    let found = finding.found.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    format!("{state:7}  {name:11}  {found}{advice}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A problem of any check ends the command with exit code 1 and its name; a check that is left out does not.
    #[test]
    fn a_problem_decides_the_exit_code() {
        let args = |skip: &[&str]| SelfCheckArgs {
            folder: "/proc/self/run".into(),
            python: "/no/such/python".to_owned(),
            skip: skip.iter().map(|name| (*name).to_owned()).collect(),
            json: JsonArg { json: true },
        };
        let failed = run(&args(&["kernels", "determinism"])).unwrap_err();
        assert_eq!(failed.code(), 1);
        assert!(failed.message().unwrap().ends_with("a problem: disk, python"), "{:?}", failed.message());
        assert!(run(&args(&["kernels", "determinism", "disk", "python"])).is_ok());
    }
}
