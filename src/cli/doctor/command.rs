//! `trainer doctor`: decides between a record and a configuration, and prints the findings.

use std::path::Path;

use clap::Args;

use super::super::args::ConfigArgs;
use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::{before, explain, show};
use burnish_config::kinds::KINDS;
use burnish_doctor::{AlarmWatch, Verdict, diagnose, read};

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Folder of a run, trainer_state.json of TRL, or metrics of verl; or a configuration, to be checked before it runs
    #[arg(value_name = "RUN|CONFIG")]
    source: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// Sample responses to the first N prompts of a configuration; 0 = none [default: 16, if that takes about a second]
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Print the page of these checks: meaning, number, threshold with its source, remedy and an example
    #[arg(long, value_name = "CHECK", num_args = 1.., conflicts_with_all = ["source", "sample", "json"])]
    explain: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

/// Makes all checks and prints their findings, with the alarms that the rows of a run raise.
///
/// # Errors
/// If a check fails, or the source cannot be read.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CliError> {
    if !args.explain.is_empty() {
        return explain(args);
    }
    let evidence = match args.source.as_deref().filter(|source| is_record(args, source)) {
        Some(source) => {
            check_words(args, source)?;
            read(Path::new(source)).map_err(CliError::setup)?
        }
        None => before::evidence(&configuration(args)?, args.sample)?,
    };
    let findings = diagnose(&evidence);
    let watch = AlarmWatch::over(&evidence);
    match args.json.json {
        true => print_rows(findings.iter().map(|one| show::row(one, watch.raised())))?,
        false => print(&show::text(&evidence, &findings, watch.raised()))?,
    }
    let failed: Vec<&str> =
        findings.iter().filter(|one| one.finding.verdict == Verdict::Fail).map(|one| one.check.name).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(CliError::Run(format!("the doctor found a fault: {}", failed.join(", ")))),
    }
}

/// Prints the pages of checks.
fn explain(args: &DoctorArgs) -> Result<(), CliError> {
    if has_config(args) {
        return Err(CliError::Setup(
            "--explain describes checks and reads no configuration: leave one of the two out".to_owned(),
        ));
    }
    print(&explain::pages(&explain::named(&args.explain)?))
}

/// Returns true if the source is the record of a run: a folder, or a file that is not a configuration.
fn is_record(args: &DoctorArgs, source: &str) -> bool {
    let is_yaml = source.ends_with(".yaml") || source.ends_with(".yml");
    !has_config(args) && !is_yaml && Path::new(source).exists()
}

/// Refuses words that only a configuration can use.
fn check_words(args: &DoctorArgs, source: &str) -> Result<(), CliError> {
    let sample = args.sample.map(|count| format!("--sample {count}"));
    match args.config.overrides.first().cloned().or(sample) {
        None => Ok(()),
        Some(word) => Err(CliError::Setup(format!(
            "{source} is the record of a run, and `{word}` is for a configuration: leave it out, or name a YAML file"
        ))),
    }
}

fn has_config(args: &DoctorArgs) -> bool {
    args.config.config.is_some() || args.config.config_name.is_some()
}

/// Returns the arguments of the configuration. The first word is its name, unless a flag names it.
fn configuration(args: &DoctorArgs) -> Result<ConfigArgs, CliError> {
    let mut config = args.config.clone();
    match &args.source {
        // The name of a stage, as in its own command.
        Some(word) if has_config(args) && KINDS.iter().any(|known| known.name == word) => {}
        Some(word) if has_config(args) => config.overrides.insert(0, word.clone()),
        Some(name) => config.config = Some(name.clone()),
        None if has_config(args) => {}
        None => return Err(CliError::Setup("`trainer doctor` needs a run or a configuration: trainer doctor RUN".to_owned())),
    }
    Ok(config)
}
