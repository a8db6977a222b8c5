//! The result of a replay: its steps compared with the record.

use anyhow::anyhow;
use serde_json::{Value, json};

use super::super::error::CliError;
use super::again::{Again, check_cost, duration, place};
use super::obstacles;
use super::proof::{Comparison, MetricPair, compare};
use super::recorded::{Beginning, MetricRow, RecordedSteps, as_recorded};
use super::settings::slices;
use crate::job::probe::ProbedStep;
use burnish_run::Output;

/// Seconds that a replay may take without `--limit`.
pub(super) const LIMIT: f64 = 600.0;

/// A step of the record and the same step made again.
pub(super) struct Replayed {
    pub step: u64,
    pub record: MetricRow,
    pub replay: MetricRow,
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
    tracing::info!("{steps} from {}, about {}", place(&again.from), duration(seconds));
    if let Some(slices) = slices(recorded, &again.from) {
        tracing::info!("the run summed the gradients of {slices} slices, one for each process: so does the replay");
    }
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
    fn difference(&self) -> Option<(u64, &MetricPair)> {
        let proved = self.before.iter().chain(self.shown.iter().filter(|_| self.changes.is_empty()));
        proved.into_iter().find_map(|step| Some((step.step, step.comparison.different.first()?)))
    }

    /// Returns the failure of a replay that differs from the record.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
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
        let metrics = |row: &MetricRow| -> Value {
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
