//! `trainer replay`: one step of a run, made again and shown whole.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::again::{Again, check_cost, place};
use super::proof::{Comparison, MetricPair, compare};
use super::recorded::{Beginning, RecordedSteps, Row, as_recorded};
use super::{obstacles, text};
use crate::job::probe::ProbedStep;
use burnish_report::replay_page::replay_page;
use burnish_run::Output;
use burnish_util::fs::write_atomic;

/// Seconds that a replay may take without `--limit`.
pub(super) const LIMIT: f64 = 600.0;

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Step to show
    #[arg(long, value_name = "N")]
    step: u64,
    /// Sample of the step to show token by token, by its number in the batch
    #[arg(long, value_name = "I")]
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

/// A step of the record and the same step made again.
pub(super) struct Replayed {
    pub step: u64,
    pub record: Row,
    pub replay: Row,
    pub comparison: Comparison,
    pub inside: Option<ProbedStep>,
}

/// Steps that were made again, from the first one on.
pub(super) struct Replay {
    pub from: Beginning,
    pub seconds: f64,
    pub changes: Vec<String>,
    /// Steps before the first shown one.
    pub before: Vec<Replayed>,
    pub shown: Vec<Replayed>,
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

/// Makes the steps again, and compares them with the record. Says first how much there is to do and what may differ.
///
/// # Errors
/// Wrong input, if a step is not in the record or takes too long; the errors of a step.
pub(super) fn make(again: &Again, limit: f64, output: &Output) -> Result<Replay, CliError> {
    let (recorded, (first, until)) = (again.recorded, again.shown);
    [first, until].iter().try_for_each(|step| recorded.row(*step).map(drop)).map_err(CliError::setup)?;
    let (count, seconds) = (until - again.from.step, recorded.seconds(again.from.step + 1..=until));
    check_cost(count, seconds, &again.from, limit).map_err(CliError::setup)?;
    let steps = if count == 1 { "1 step".to_owned() } else { format!("{count} steps") };
    tracing::info!("{steps} from {}, about {}", place(&again.from), text::duration(seconds));
    obstacles::find(recorded).iter().for_each(|line| tracing::warn!("may differ: {line}"));
    let made = tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::default(), || again.make(output))?;
    let mut replayed = Vec::new();
    for made in made.steps {
        let record = recorded.row(made.step).map_err(CliError::run)?.clone();
        let replay = as_recorded(&made.row);
        let comparison = compare(&record, &replay, made.step < first);
        replayed.push(Replayed { step: made.step, record, replay, comparison, inside: made.inside });
    }
    let shown = replayed.split_off(replayed.iter().take_while(|step| step.step < first).count());
    let changes = again.changes.to_vec();
    Ok(Replay { from: again.from.clone(), seconds: made.seconds, changes, before: replayed, shown })
}

impl Replay {
    /// Returns the first step that differs from the record although no setting was changed, with its first different metric.
    pub(super) fn difference(&self) -> Option<(u64, &MetricPair)> {
        let proved = self.before.iter().chain(self.shown.iter().filter(|_| self.changes.is_empty()));
        proved.into_iter().find_map(|step| Some((step.step, step.comparison.different.first()?)))
    }

    /// Returns the failure of a replay that differs from the record.
    fn verdict(&self) -> Result<(), CliError> {
        let Some((step, pair)) = self.difference() else { return Ok(()) };
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "missing".to_owned());
        Err(CliError::run(anyhow!(
            "step {step} differs from the record: {} is {} in the record and {} in the replay",
            pair.name,
            shown(&pair.record),
            shown(&pair.replay)
        )))
    }

    /// Returns an object for each shown step.
    pub(super) fn objects(&self, recorded: &RecordedSteps) -> Vec<Value> {
        let metrics = |row: &Row| -> Value {
            let value = |text: &String| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
            row.iter().map(|(name, text)| (name.clone(), value(text))).collect::<serde_json::Map<_, _>>().into()
        };
        let pair = |pair: &MetricPair| json!({"metric": pair.name, "record": pair.record, "replay": pair.replay});
        let object = |step: &Replayed| {
            json!({
                "step": step.step,
                "run": recorded.dir,
                "from_step": self.from.step,
                "seconds": self.seconds,
                "set": self.changes,
                "equal": step.comparison.different.is_empty(),
                "compared": step.comparison.compared,
                "not_compared": step.comparison.measured,
                "differences": step.comparison.different.iter().map(pair).collect::<Vec<_>>(),
                "record": metrics(&step.record),
                "replay": metrics(&step.replay),
                "samples": step.inside.as_ref().map(|inside| &inside.samples),
                "layers": step.inside.as_ref().map(|inside| &inside.layers),
            })
        };
        self.shown.iter().map(object).collect()
    }
}
