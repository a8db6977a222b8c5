//! `trainer reward check`: the scores that a reward function gives to the responses in a file.

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::args::ConfigArgs;
use super::error::CliError;
use super::print::{print, print_data};
use crate::pipelines::reward_check::{CheckedResponse, check};
use burnish_config::schema::EvalConfig;

#[derive(Subcommand)]
pub(crate) enum RewardCommand {
    /// Call a reward function as training does, and print the score or the error of each response
    Check(CheckArgs),
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// FILE.py, FILE.py:FUNCTION or pkg://MODULE:FUNCTION, or the name of a built-in function
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// Rows with responses, as `trainer eval` reads them
    #[arg(long, value_name = "FILE")]
    rows: String,
    /// Print a JSON object per response
    #[arg(long)]
    json: bool,
    /// key=value settings of evaluation.yaml, such as data.response_key=completion; later ones win
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
}

pub(super) fn run(command: RewardCommand) -> Result<(), CliError> {
    let RewardCommand::Check(args) = command;
    let loaded = args.config().load::<EvalConfig>()?;
    let checked = check(loaded).map_err(CliError::classify)?;
    match args.json {
        true => print_data(&checked.iter().map(|one| format!("{}\n", Value::Object(one.object.clone()))).collect::<String>())?,
        false => print(&checked.iter().map(shown).collect::<String>())?,
    }
    match checked.iter().filter(|one| one.score.is_err()).count() {
        0 => Ok(()),
        failed => {
            Err(CliError::run(anyhow!("{failed} of {} responses have no score because the function failed", checked.len())))
        }
    }
}

/// Returns the line of a response, or several lines for an error.
fn shown(one: &CheckedResponse) -> String {
    let place = match one.response {
        0 => one.place.clone(),
        response => format!("{}, response {response}", one.place),
    };
    match &one.score {
        Ok(score) => format!("{place}  {}\n", score.score.map_or_else(|| "abstains".to_owned(), |score| score.to_string())),
        Err(error) => format!("{place}  {error}\n"),
    }
}

impl CheckArgs {
    /// Returns the settings of the evaluation that the arguments describe.
    fn config(&self) -> ConfigArgs {
        let set = |key: &str, value: &str| format!("{key}='{}'", value.replace('\'', "\\'"));
        let mut overrides = vec![set("data.path", &self.rows)];
        let (path, names) = split(&self.function);
        match burnish_reward::function(&self.function) {
            Some(built_in) => overrides.push(format!("reward_model.reward_functions=[{}]", built_in.name)),
            None => {
                overrides.push(set("custom_reward_function.path", path));
                overrides.extend(names.map(|names| format!("custom_reward_function.name=[{names}]")));
            }
        }
        overrides.extend(self.overrides.iter().cloned());
        ConfigArgs { config: Some("evaluation.yaml".to_owned()), overrides, ..ConfigArgs::default() }
    }
}

/// Splits `FILE:FUNCTION`, where several functions may be separated by commas.
fn split(function: &str) -> (&str, Option<&str>) {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_,".contains(c));
    match function.rsplit_once(':') {
        Some((file, names)) if is_name(names) => (file, Some(names)),
        _ => (function, None),
    }
}
