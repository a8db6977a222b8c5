//! Alarms of a run: checks of `trainer doctor` after every step, and their consequence.

use std::path::Path;

use burnish_config::schema::OnAlarm;
use burnish_distributed::Ranks;
use burnish_doctor::{AlarmWatch, CheckPhase, Evidence, RunLibrary, Verdict};
use burnish_run::{Record, RecordedAlarm, RunInfo};
use burnish_tracking::Metrics;

/// Check that says whether a run ends without a signal.
const NO_SIGNAL: &str = "no signal";

/// The alarms of a run. Only the process that keeps the record has some.
#[derive(Default)]
pub(super) struct Alarms {
    watch: Option<AlarmWatch>,
    /// An alarm was raised in this step.
    is_new: bool,
}

impl Alarms {
    /// Returns the alarms of the run whose record in `dir` has begun. They know its rows: an alarm that was raised before
    /// is not raised again.
    pub(super) fn of(dir: &Path) -> Self {
        let evidence = burnish_doctor::read(dir).unwrap_or_else(|error| {
            tracing::warn!("alarms start from this step, because the rows before cannot be read: {error:#}");
            Evidence::new(CheckPhase::After, RunLibrary::Verl)
        });
        let mut watch = AlarmWatch::over(&evidence);
        let before = RunInfo::read(dir).map(|info| info.alarms).unwrap_or_default();
        before.iter().for_each(|alarm| watch.silence(&alarm.name));
        Self { watch: Some(watch), is_new: false }
    }

    /// Follows the row of a step, adds a metric for each new alarm, and reports it in the log.
    pub(super) fn follow(&mut self, step: u64, row: &mut Metrics) -> Vec<RecordedAlarm> {
        let Some(watch) = &mut self.watch else { return vec![] };
        let raised = watch.follow(step, row.iter());
        self.is_new = !raised.is_empty();
        row.extend(raised.iter().map(|one| (one.alarm.metric(), 1.0)));
        let recorded = raised.iter().map(|one| {
            let (name, finding) = (one.alarm.check.name, &one.finding);
            let remedy = finding.remedy.clone().unwrap_or_default();
            tracing::warn!("alarm at step {step}: {name}: {}. {remedy}", finding.sentence);
            RecordedAlarm { name: name.to_owned(), step, number: finding.number, sentence: finding.sentence.clone(), remedy }
        });
        recorded.collect()
    }

    /// Returns the consequence of the alarms of this step; `Warn` without one. Collective.
    pub(super) fn consequence(&self, on_alarm: OnAlarm, ranks: &Ranks) -> OnAlarm {
        match on_alarm {
            OnAlarm::Warn => OnAlarm::Warn,
            other if ranks.any(self.is_new) => other,
            _ => OnAlarm::Warn,
        }
    }

    /// Notes in the record whether the run ends without a signal.
    pub(super) fn note_end(&self, record: &mut Record) {
        let finding = self.watch.as_ref().and_then(|watch| watch.finding(NO_SIGNAL));
        let fails = finding.filter(|finding| finding.verdict == Verdict::Fail);
        record.note_no_signal(fails.map(|finding| finding.sentence));
    }
}
