//! `trainer replay`: one step of a run, made again and shown whole.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde_json::Value;

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::again::Again;
use super::outcome::{LIMIT, make};
use super::recorded::RecordedSteps;
use super::text;
use burnish_report::replay_page::replay_page;
use burnish_run::Output;
use burnish_util::fs::write_atomic;

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Step to show
    #[arg(long, value_name = "N")]
    step: u64,
    /// Sample of the step to show token by token, by its number in the batch
    #[arg(long, value_name = "I", conflicts_with = "json")]
    sample: Option<usize>,
    /// Change a setting from this step on, and compare the outcome with the record
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Last step to make again [default: the step]
    #[arg(long, value_name = "M")]
    until: Option<u64>,
    /// Longest time to spend, in seconds, by the recorded times of the steps
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT)]
    limit: f64,
    /// Also write the step as a page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) fn run(args: &ReplayArgs, output: &Output) -> Result<(), CliError> {
    let recorded = RecordedSteps::read(&args.run).map_err(CliError::setup)?;
    let html = args.html.as_ref().map(std::path::absolute).transpose().map_err(|error| CliError::setup(error.into()))?;
    if let Some(html) = &html
        && html.starts_with(&recorded.dir)
    {
        return Err(CliError::setup(anyhow!("--html: {} is in the folder of the run, which stays unchanged", html.display())));
    }
    let until = args.until.unwrap_or(args.step);
    if until < args.step {
        return Err(CliError::setup(anyhow!("--until {until} is before --step {}", args.step)));
    }
    let from = recorded.before(args.step);
    let again = Again {
        recorded: &recorded,
        from,
        shown: (args.step, until),
        probed: args.step..=args.step,
        validates_all: false,
        changes: &args.set,
    };
    let replay = make(&again, args.limit, output)?;
    if let (Some(sample), Some(inside)) = (args.sample, replay.shown.first().and_then(|step| step.inside.as_ref()))
        && sample >= inside.samples.len()
    {
        let last = inside.samples.len().saturating_sub(1);
        return Err(CliError::setup(anyhow!("--sample {sample}: the step has samples 0 to {last}")));
    }
    if let Some(html) = &html {
        let title = format!("step {} of {}", args.step, recorded.dir.display());
        let page = replay_page(&title, &Value::Array(replay.objects(&recorded)));
        write_atomic(html, page.as_bytes()).map_err(CliError::run)?;
        tracing::info!("page: {}", html.display());
    }
    match args.json.json {
        true => print_rows(replay.objects(&recorded))?,
        false => print(&text::of(&recorded, &replay, args.sample))?,
    }
    replay.verdict()
}
