//! `trainer bisect`: the first step whose metric is bad, and what a replay says of it and of the step before.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::again::Again;
use super::outcome::{LIMIT, Replay, make};
use super::proof::compare;
use super::recorded::{MetricRow, RecordedSteps};
use super::text;
use burnish_run::Output;
use burnish_util::json_number;
use burnish_util::number::short;
use burnish_util::suggest::did_you_mean;

#[derive(Args)]
pub(crate) struct BisectArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Metric to search
    #[arg(long, value_name = "NAME")]
    metric: String,
    /// Condition of a bad value: one of <, <=, >, >= and a number, or nan
    #[arg(long, value_name = "CONDITION")]
    bad: String,
    /// Longest time to spend, in seconds, by the recorded times of the steps
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT)]
    limit: f64,
    #[command(flatten)]
    json: JsonArg,
}

/// Compares a value with a limit.
type Comparison = fn(f64, f64) -> bool;

/// A condition of bad values.
struct Condition {
    holds: Comparison,
    number: f64,
}

/// Comparisons. A sign that begins another one comes after it.
const SIGNS: &[(&str, Comparison)] = &[("<=", |a, b| a <= b), (">=", |a, b| a >= b), ("<", |a, b| a < b), (">", |a, b| a > b)];

impl Condition {
    fn parse(text: &str) -> Result<Self> {
        if text == "nan" {
            return Ok(Self { holds: |value, _| value.is_nan(), number: f64::NAN });
        }
        let parsed = SIGNS.iter().find_map(|(sign, holds)| Some((*holds, text.strip_prefix(sign)?.trim().parse().ok()?)));
        let (holds, number) =
            parsed.with_context(|| format!("--bad {text}: write <, <=, > or >= and a number, such as '<0.1', or nan"))?;
        Ok(Self { holds, number })
    }

    fn is_bad(&self, row: &MetricRow, metric: &str) -> Option<bool> {
        Some((self.holds)(value(row, metric)?, self.number))
    }
}

fn value(row: &MetricRow, metric: &str) -> Option<f64> {
    let text = &row.iter().find(|(name, _)| name == metric)?.1;
    json_number::from_value(&serde_json::from_str(text).ok()?)
}

/// The steps of a search.
struct FoundStep {
    /// The first bad step.
    bad: u64,
    /// The last good value before it, if any.
    good: Option<u64>,
    value: f64,
    /// Steps that were replayed because the record lacks their value.
    replayed: u64,
}

pub(crate) fn run(args: &BisectArgs, output: &Output) -> Result<(), CliError> {
    let recorded = RecordedSteps::read(&args.run).map_err(CliError::setup)?;
    let condition = Condition::parse(&args.bad).map_err(CliError::setup)?;
    let in_record = search(&recorded, args, &condition).map_err(CliError::setup)?;
    let Some((good, bad)) = in_record else {
        let line = format!("no recorded value of {} is {}\n", args.metric, args.bad);
        return if args.json.json {
            print_rows([json!({
                "metric": args.metric, "bad": args.bad, "step": null, "value": null, "good_until": null, "replayed": 0, "steps": [],
            })])
        } else {
            print(&line)
        };
    };
    let first = good.map_or(1, |good| good + 1).max(1);
    let value_at = |step: u64| recorded.rows.get(&step).and_then(|row| value(row, &args.metric)).unwrap_or(f64::NAN);
    if bad == 0 {
        return Err(CliError::setup(anyhow!("{} is bad at step 0, before the first update", args.metric)));
    }
    let mut found = FoundStep { bad, good, value: value_at(bad), replayed: 0 };
    let probed = |step: u64| step.saturating_sub(1).max(1)..=step;
    let mut replay = None;
    if first < bad {
        // The record has no value between the last good and the first bad one: each step between is validated again.
        let again = Again {
            recorded: &recorded,
            from: recorded.before(first),
            shown: (first, bad),
            probed: first..=bad,
            validates_all: true,
            changes: &[],
        };
        let made = make(&again, args.limit, output)?;
        let earliest = made.shown.iter().find(|step| condition.is_bad(&step.replay, &args.metric) == Some(true));
        found.replayed = bad - first;
        if let Some(step) = earliest {
            (found.bad, found.value) = (step.step, value(&step.replay, &args.metric).unwrap_or(f64::NAN));
            found.good = if step.step > first { Some(step.step - 1) } else { good };
        }
        replay = Some(made);
    }
    let replay = match replay {
        Some(replay) => replay.only(found.bad),
        None => {
            let steps = probed(bad);
            let again = Again {
                recorded: &recorded,
                from: recorded.before(*steps.start()),
                shown: (*steps.start(), bad),
                probed: steps,
                validates_all: false,
                changes: &[],
            };
            make(&again, args.limit, output)?
        }
    };
    match args.json.json {
        true => print_rows([object(args, &found, &replay, &recorded)]),
        false => print(&shown(args, &found, &replay)),
    }
}

impl Replay {
    /// Keeps a step and the step before it, and compares only the metrics that both rows have.
    fn only(mut self, step: u64) -> Self {
        self.shown.retain(|one| one.step + 1 == step || one.step == step);
        for one in &mut self.shown {
            let names: Vec<&String> = one.record.iter().map(|(name, _)| name).collect();
            let both: MetricRow = one.replay.iter().filter(|(name, _)| names.contains(&name)).cloned().collect();
            one.comparison = compare(&one.record, &both, true);
        }
        self
    }
}

/// Returns the last good step before the first bad one, and that one, by the record.
fn search(recorded: &RecordedSteps, args: &BisectArgs, condition: &Condition) -> Result<Option<(Option<u64>, u64)>> {
    let mut good = None;
    let mut is_known = false;
    for (step, row) in &recorded.rows {
        match condition.is_bad(row, &args.metric) {
            Some(true) => return Ok(Some((good, *step))),
            Some(false) => good = Some(*step),
            None => continue,
        }
        is_known = true;
    }
    if is_known {
        return Ok(None);
    }
    let names: Vec<&str> = recorded.rows.values().flatten().map(|(name, _)| name.as_str()).collect();
    Err(anyhow!("--metric {}: no row has it.{}", args.metric, did_you_mean(&args.metric, names.into_iter())))
}

fn shown(args: &BisectArgs, found: &FoundStep, replay: &Replay) -> String {
    let searched = match found.replayed {
        0 => "found in the record".to_owned(),
        count => format!("the record has no value of {count} steps before it, which were replayed and validated"),
    };
    let good = found.good.map_or_else(|| "no step before it has a value".to_owned(), |good| format!("good until step {good}"));
    let head = format!("{} is {} at step {}: {}, {good}; {searched}\n", args.metric, args.bad, found.bad, short(found.value));
    replay.shown.iter().fold(head, |mut all, step| {
        all.push('\n');
        all.push_str(&text::step(replay, step));
        all
    })
}

fn object(args: &BisectArgs, found: &FoundStep, replay: &Replay, recorded: &RecordedSteps) -> Value {
    json!({
        "metric": args.metric,
        "bad": args.bad,
        "step": found.bad,
        "value": json_number::to_value(found.value),
        "good_until": found.good,
        "replayed": found.replayed,
        "steps": replay.objects(recorded),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_hold() {
        for (text, value, holds) in [
            ("<0.1", 0.05, true),
            ("<=0.1", 0.1, true),
            ("> -1", -2.0, false),
            (">=2", 2.0, true),
            ("nan", f64::NAN, true),
            ("<1", f64::NAN, false),
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!((condition.holds)(value, condition.number), holds, "{text}");
        }
        assert!(Condition::parse("0.1").is_err() && Condition::parse("<x").is_err());
    }
}
