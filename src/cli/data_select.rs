//! `trainer data select`: training rows from scored responses.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::Args;

use super::error::CliError;
use burnish_data::select::{self, KINDS, ScoredResponses, SelectColumns, SelectOptions};
use burnish_util::fs::{check_writable, refuse_input};

#[derive(Args)]
#[command(after_help = kinds())]
pub(crate) struct SelectArgs {
    /// Kind of rows to make; the list is below
    rows: String,
    /// Scored responses, as trainer eval writes them to a .parquet file, or one per row with input, output and reward
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    input: Vec<PathBuf>,
    /// File to write, .jsonl or .parquet
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Minimum difference of the scores of a pair [default: 0]
    #[arg(long, value_name = "NUMBER")]
    min_margin: Option<f64>,
    /// Minimum score of a good response
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Template of the prompts in csft [default: "{input} <rm_score>: {reward} "]
    #[arg(long, value_name = "TEXT")]
    reward_template: Option<String>,
    /// Subtract the mean of the scores and divide by their standard deviation, in csft
    #[arg(long)]
    normalize_reward: bool,
    /// Column of the prompts [default: prompt, or input]
    #[arg(long, value_name = "NAME")]
    prompt_key: Option<String>,
    /// Column of the responses [default: responses, or output]
    #[arg(long, value_name = "NAME")]
    response_key: Option<String>,
    /// Column of the scores [default: scores, or reward]
    #[arg(long, value_name = "NAME")]
    score_key: Option<String>,
}

/// The kinds of rows, for the help text.
fn kinds() -> String {
    format!("Rows:\n{}", KINDS.iter().map(|kind| format!("  {}\n    {}\n", kind.name, kind.doc)).collect::<String>())
}

/// Makes the rows and writes them.
pub(super) fn run(args: &SelectArgs) -> Result<(), CliError> {
    select(args).map_err(CliError::classify)
}

fn select(args: &SelectArgs) -> Result<()> {
    let kind = select::find(&args.rows)?;
    let given = [
        ("min_margin", args.min_margin.is_some()),
        ("threshold", args.threshold.is_some()),
        ("reward_template", args.reward_template.is_some()),
        ("normalize_reward", args.normalize_reward),
    ];
    if let Some((name, _)) = given.iter().find(|(name, is_set)| *is_set && !kind.reads.contains(name)) {
        bail!("--{}: `{}` does not read it", name.replace('_', "-"), kind.name);
    }
    let number = |name: &str, value: Option<f64>, min: f64| match value {
        Some(value) if !value.is_finite() || value < min => bail!("--{name} {value}: a number, at least {min}"),
        value => Ok(value),
    };
    let options = SelectOptions {
        min_margin: number("min-margin", args.min_margin, 0.0)?.unwrap_or(0.0),
        threshold: number("threshold", args.threshold, f64::MIN)?,
        reward_template: args.reward_template.clone().unwrap_or_else(|| "{input} <rm_score>: {reward} ".into()),
        normalize_reward: args.normalize_reward,
    };
    refuse_input(("--output", &args.output), args.input.iter().map(|file| ("--input", file.as_path())))?;
    check_writable(&args.output)?;
    let keys = [&args.prompt_key, &args.response_key, &args.score_key].map(|key| key.as_deref());
    let answers = ScoredResponses::read(&args.input, &SelectColumns::choose(&args.input, keys)?)?;
    let untold = "conversations without recorded messages (custom loops, text environments, text prompts) or without a turn \
                  of the model";
    ensure!(
        !answers.responses.is_empty(),
        "there are no scored responses to select from{}",
        if answers.unknown > 0 { format!("; left out: {} {untold}", answers.unknown) } else { String::new() }
    );
    let made = (kind.make)(&answers, &options)?;
    let unscored = [(answers.unscored, "responses without a score".to_owned()), (answers.unknown, untold.to_owned())];
    let left_out: Vec<String> = made
        .left_out
        .into_iter()
        .chain(unscored)
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    ensure!(!made.rows.is_empty(), "no row is left, and nothing is written: left out were {}", left_out.join(", "));
    select::write_objects(&args.output, &made.rows)?;
    let left_out = if left_out.is_empty() { String::new() } else { format!("; left out: {}", left_out.join(", ")) };
    tracing::info!("{}: {} rows of {} responses{left_out}", args.output.display(), made.rows.len(), answers.responses.len());
    Ok(())
}
