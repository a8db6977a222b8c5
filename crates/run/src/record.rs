//! Writes the whole record of an active run: trackers, samples, phases, log, and its end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::info::{BestSoFar, RecordedAlarm, RunInfo, RunState};
use super::sample::{Sample, SamplesFile};
use super::stage::RunStage;
use super::watched::{ValidationCurve, Validations, WatchedMetric};
use super::{LOG, Output, Phase};
use burnish_tracking::{Ending, Exit, Metrics, Progress, StepTable, TrackedRun, Trackers, metrics_file};
use burnish_util::interrupt::{Interrupt, Interrupted};
use burnish_util::number::four_digits;
use burnish_util::secret::hide;
use burnish_util::shell;
use burnish_util::time::{human, unix_time};

/// Record of a run.
#[derive(Debug)]
pub struct Record {
    trackers: Trackers,
    stage: RunStage,
    progress: Progress,
    interrupt: Interrupt,
    watched: WatchedMetric,
    validations: Validations,
    /// Value of [`Record::note_no_signal`].
    no_signal: Option<String>,
    /// Time that the last row took, with its samples; `spent_on_samples` is the time that samples of the next row have taken.
    spent: Option<Duration>,
    spent_on_samples: Duration,
    /// The run's folder, if its record is written to one.
    folder: Option<Folder>,
}

#[derive(Debug)]
struct Folder {
    dir: PathBuf,
    info: RunInfo,
    samples: SamplesFile,
    stage: RunStage,
    ended: bool,
}

impl Record {
    /// Begins or resumes the record of a run. A fresh run (`session.resumed_step` is `None`) gets a new id and an empty record. A
    /// resumed run keeps the id, its start time, and the rows written up to that step.
    ///
    /// # Errors
    /// If a tracker cannot be started, or a file of the record cannot be written.
    pub fn begin(
        mut info: RunInfo,
        mut session: TrackedRun,
        loggers: &[String],
        watched: WatchedMetric,
        output: &Output,
    ) -> Result<Self> {
        let dir = session.dir.clone();
        if let Some(step) = session.resumed_step {
            let found = RunInfo::read_damaged(&dir);
            if let Some(problem) = found.problem {
                tracing::warn!("{problem}; these values start from their defaults");
            }
            let seen = Phase::read(&dir).map(|at| at.time);
            info.resume_from(found.info.unwrap_or_else(RunInfo::nothing), step, seen);
        }
        info.step = session.resumed_step.unwrap_or(0);
        info.total_steps = session.total_steps;
        info.metrics = metrics_file(&session);
        session.run_id = info.id.clone();
        // Trackers are opened first: if one fails, the earlier run's record stays unchanged.
        let trackers = Trackers::open(loggers, &session)?;
        let first = info.validated_after.map_or(0, |after| after + 1);
        let mut validations = match session.resumed_step {
            Some(step) => watched.in_file(&info.metrics, first..=step),
            None => Validations::default(),
        };
        // A metrics file outside the run's folder may lack earlier steps.
        validations.best = validations.best.or(info.best.take().filter(|best| best.step >= first));
        info.best.clone_from(&validations.best);
        let samples = SamplesFile::open(&dir, session.resumed_step)?;
        output.log.open(&dir, session.resumed_step.is_some())?;
        info.write(&dir)?;
        let stage = RunStage::unrecorded(output.progress.clone());
        stage.record(&dir)?;
        stage.step(info.step);
        stage.enter("start");
        output.progress.worked(Duration::try_from_secs_f64(info.worked_before).unwrap_or_default());
        tracing::info!("to look at the run: trainer report {} --watch", shell::word(&dir));
        let folder = Folder { dir, info, samples, stage: stage.clone(), ended: false };
        Ok(Self { trackers, stage, validations, folder: Some(folder), ..Self::with_output(watched, output) })
    }

    /// Creates a record that does not write to the run's folder and logs only to the console.
    pub fn console_only(session: &TrackedRun, watched: WatchedMetric, output: &Output) -> Self {
        Self { trackers: Trackers::console(session), ..Self::with_output(watched, output) }
    }

    /// Creates a record that stores nothing, for a process whose run is recorded by another process.
    pub fn silent(watched: WatchedMetric, output: &Output) -> Self {
        Self::with_output(watched, output)
    }

    fn with_output(watched: WatchedMetric, output: &Output) -> Self {
        Self {
            trackers: Trackers::default(),
            stage: RunStage::unrecorded(output.progress.clone()),
            progress: output.progress.clone(),
            interrupt: Interrupt::default(),
            watched,
            validations: Validations::default(),
            no_signal: None,
            spent: None,
            spent_on_samples: Duration::ZERO,
            folder: None,
        }
    }

    /// Sets the interrupt that, once requested, ends the wait for trackers at the end of the run.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
    }

    /// Returns the stage that reports phases.
    pub fn stage(&self) -> &RunStage {
        &self.stage
    }

    /// Logs the metrics of a step. Adds `timing_s/tracking`: the time that logging the previous step took, its samples included.
    pub fn log(&mut self, step: u64, mut metrics: Metrics) {
        metrics.extend(self.spent.take().map(|spent| ("timing_s/tracking", spent.as_secs_f64())));
        let start = Instant::now();
        self.watch(step, &metrics);
        self.trackers.log(step, &metrics);
        self.spent = Some(start.elapsed() + std::mem::take(&mut self.spent_on_samples));
    }

    /// Shows samples of a step as this table, and writes them to the samples file.
    pub fn samples(&mut self, step: u64, samples: &[Sample], table: &StepTable) {
        let start = Instant::now();
        self.trackers.table(step, table);
        if let Some(folder) = &mut self.folder
            && let Err(error) = folder.samples.add(samples)
        {
            tracing::warn!("samples of step {step} are not written yet: {error:#}");
        }
        self.spent_on_samples += start.elapsed();
    }

    fn watch(&mut self, step: u64, metrics: &Metrics) {
        let is_best = self.watched.take(step, metrics.iter(), &mut self.validations);
        if let Some(folder) = self.folder.as_mut().filter(|_| is_best) {
            folder.info.best.clone_from(&self.validations.best);
            folder.info.step = step;
            folder.write("the best validation");
        }
    }

    /// Notes that the scores teach the policy nothing, with the doctor's sentence. [`end`](Record::end) reports it. It then
    /// recommends the last checkpoint only if validation did not find a better one.
    pub fn note_no_signal(&mut self, sentence: Option<String>) {
        self.no_signal = sentence;
    }

    /// Adds alarms of a step to run.json.
    pub fn note_alarms(&mut self, step: u64, alarms: Vec<RecordedAlarm>) {
        if let Some(folder) = self.folder.as_mut().filter(|_| !alarms.is_empty()) {
            folder.info.alarms.extend(alarms);
            folder.info.step = step;
            folder.write("the alarm");
        }
    }

    /// Ends the record of a run after `step` steps, with the last checkpoint at `saved`. Write errors are only logged, since the
    /// run has ended in any case. Trackers finish last, because they may wait for a server.
    pub fn end(&mut self, step: u64, saved: Option<&Path>, result: &Result<()>) {
        self.progress.finish();
        let (exit, state) = match result {
            Ok(()) => (Exit::Finished, RunState::Finished),
            Err(error) if error.is::<Interrupted>() => (Exit::Interrupted, RunState::Interrupted),
            Err(_) => (Exit::Failed, RunState::Failed),
        };
        let (at, no_signal) = (self.stage.now(), self.no_signal.take());
        if let Some(folder) = &mut self.folder {
            folder.info.no_signal.clone_from(&no_signal);
            folder.end(step, state, result.as_ref().err().map(|error| format!("{error:#}")), &at.phase);
            match result {
                Ok(()) => folder
                    .summary(step, saved, &self.validations, no_signal.as_deref())
                    .into_iter()
                    .for_each(|line| tracing::info!("{line}")),
                Err(_) => tracing::info!("{} after {step} steps in {}, in phase {}", state.name(), folder.worked(), at.phase),
            }
        }
        self.trackers.finish(&Ending::new(exit, &self.interrupt));
    }
}

impl Folder {
    fn end(&mut self, step: u64, state: RunState, error: Option<String>, phase: &str) {
        self.ended = true;
        self.info.step = step;
        self.info.ended = Some(unix_time());
        self.info.phase = (state == RunState::Failed).then(|| phase.to_owned());
        self.info.state = state;
        self.info.error = error.map(|error| hide(&error).into_owned());
        if let Err(error) = self.samples.flush() {
            tracing::warn!("the last samples are not recorded: {error:#}");
        }
        self.write("how the run ended");
    }

    fn write(&self, what: &str) {
        if let Err(error) = self.info.write(&self.dir) {
            tracing::warn!("{what} is not recorded: {error:#}");
        }
    }

    /// Returns the time that the run has worked.
    fn worked(&self) -> String {
        let seconds = self.info.worked(self.info.ended.unwrap_or_else(unix_time));
        human(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }

    /// Returns the lines about the result, the files and the next command.
    fn summary(&self, step: u64, saved: Option<&Path>, validations: &Validations, no_signal: Option<&str>) -> Vec<String> {
        let Self { dir, info, .. } = self;
        let mut lines = vec![format!("finished {step} steps in {}", self.worked())];
        let mut curves: Vec<&ValidationCurve> = validations.curves.iter().collect();
        curves.sort_by_key(|curve| !curve.is_accuracy());
        for curve in curves {
            let best = info.best.as_ref().filter(|best| best.metric == curve.metric && best.step != curve.last.0);
            let best = best.map(|best| format!(" (best {} at step {})", four_digits(best.value), best.step));
            lines.push(format!("{}{}", curve.line(), best.unwrap_or_default()));
        }
        let last = validations.last;
        let mut saved = saved.map(Path::to_owned);
        if let Some(sentence) = no_signal {
            let (checkpoint, advice) = worth_exporting(saved, info.best.as_ref(), last);
            lines.push(format!("no signal: {sentence}; {advice}"));
            saved = checkpoint;
        }
        lines.push(format!("metrics: {}", info.metrics.display()));
        lines.push(format!("log and samples: {}", dir.display()));
        lines.push(format!("next: trainer report {}", shell::word(dir)));
        if let Some(saved) = &saved {
            lines.push(format!("next: trainer export {} --output FOLDER", shell::word(saved)));
        }
        lines
    }
}

/// Returns the checkpoint to export if the run learned nothing in the end, and a message about it. `saved` is the last
/// checkpoint; `last` is the value of the last validation.
fn worth_exporting(saved: Option<PathBuf>, best: Option<&BestSoFar>, last: Option<f64>) -> (Option<PathBuf>, String) {
    let Some(best) = best else { return (None, "without validation, it is unknown which checkpoint to keep".to_owned()) };
    if best.step == 0 {
        return (None, "validation was never better than before training".to_owned());
    }
    if last == Some(best.value) {
        return (saved, "the last validation is as good as the best".to_owned());
    }
    let folder = saved.and_then(|last| Some(last.parent()?.join(format!("global_step_{}", best.step))));
    match folder.filter(|folder| folder.is_dir()) {
        Some(folder) => (Some(folder), format!("the best validation was at step {}, which has a checkpoint", best.step)),
        None => (None, format!("the best validation was at step {}, which has no checkpoint", best.step)),
    }
}

/// A run whose record is dropped before its end has panicked.
impl Drop for Folder {
    fn drop(&mut self) {
        if !self.ended && std::thread::panicking() {
            let (at, error) = (self.stage.now(), format!("the program panicked; see {LOG}"));
            self.end(at.step.saturating_sub(1), RunState::Failed, Some(error), &at.phase);
        }
    }
}

impl Record {
    /// Begins the record of a run in `dir`, without trackers.
    pub fn untracked(info: RunInfo, dir: &Path, resumed_step: Option<u64>) -> Self {
        let output = Output { progress: Progress::hidden(), log: crate::LogFile::default(), records: true };
        let watched = WatchedMetric { metric: None, greater_is_better: true };
        Self::begin(info, TrackedRun::in_folder(dir.to_owned(), resumed_step), &[], watched, &output).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Arc, Mutex};

    use anyhow::anyhow;

    use super::*;
    use crate::SAMPLES;
    use burnish_tracking::Tracker;

    fn begin(dir: &Path, resumed_step: Option<u64>) -> Record {
        Record::untracked(RunInfo::new("ppo", "project", "experiment"), dir, resumed_step)
    }

    fn validated(value: f64) -> Metrics {
        [("val-core/a/acc/mean@1", value)].into_iter().collect()
    }

    #[test]
    fn a_resumed_run_keeps_its_identity_and_one_that_starts_over_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = begin(dir.path(), None);
        for (step, value) in [(1, 0.25), (3, 0.5), (4, 0.125)] {
            first.log(step, validated(value));
        }
        first.end(4, None, &Err(Interrupted("stop".into()).into()));
        let recorded = RunInfo::read(dir.path()).unwrap();
        assert_eq!((recorded.state, recorded.step, &recorded.phase), (RunState::Interrupted, 4, &None));
        assert_eq!(recorded.best.as_ref().map(|best| (best.value, best.step)), Some((0.5, 3)));

        begin(dir.path(), Some(4));
        let resumed = RunInfo::read(dir.path()).unwrap();
        assert_eq!((&resumed.id, resumed.started, resumed.resumed), (&recorded.id, recorded.started, vec![4]));
        assert_eq!((resumed.state, &resumed.best), (RunState::Running, &recorded.best));
        begin(dir.path(), Some(2));
        let rewound = RunInfo::read(dir.path()).unwrap();
        assert_eq!(rewound.best.map(|best| (best.value, best.step)), Some((0.25, 1)), "step 3 is done again");
        assert_eq!(std::fs::read_to_string(dir.path().join("metrics.jsonl")).unwrap().lines().count(), 1);
        begin(dir.path(), None);
        let fresh = RunInfo::read(dir.path()).unwrap();
        assert!(fresh.id != recorded.id && fresh.resumed.is_empty() && dir.path().join(SAMPLES).is_file());
    }

    #[test]
    fn a_damaged_record_gives_what_can_be_read_to_the_resumed_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(crate::INFO);
        let mut first = begin(dir.path(), None);
        first.log(1, validated(0.25));
        drop(first);
        let before = RunInfo::read(dir.path()).unwrap();
        let mut damaged = serde_json::to_value(&before).unwrap();
        (damaged["state"], damaged["best"], damaged["project"]) = ("lost".into(), serde_json::json!([]), serde_json::json!(7));
        std::fs::write(&path, damaged.to_string()).unwrap();
        let found = RunInfo::read_damaged(dir.path());
        let problem = found.problem.unwrap();
        assert!(problem.contains("run.json is damaged") && problem.ends_with("left out: project, state, best"), "{problem}");
        assert_eq!((found.state, found.info.unwrap().experiment), (None, "experiment".to_owned()));
        drop(begin(dir.path(), Some(1)));
        let resumed = RunInfo::read(dir.path()).unwrap();
        assert_eq!((&resumed.id, resumed.started, resumed.resumed), (&before.id, before.started, vec![1]));
        assert_eq!(resumed.best, before.best, "metrics.jsonl has it");

        for nothing in ["", "{", "[]", "null"] {
            std::fs::write(&path, nothing).unwrap();
            let found = RunInfo::read_damaged(dir.path());
            assert!(found.info.is_none() && found.problem.unwrap().ends_with("left out: all of it"), "{nothing:?}");
            drop(begin(dir.path(), Some(1)));
            assert_eq!(RunInfo::read(dir.path()).unwrap().resumed, [1], "{nothing:?}");
        }
    }

    #[test]
    fn only_the_time_that_the_run_worked_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |change: &dyn Fn(&mut RunInfo)| {
            let mut info = RunInfo { started: 1000.0, process_started: Some(1000.0), ..RunInfo::new("ppo", "p", "e") };
            change(&mut info);
            info.write(dir.path()).unwrap();
        };
        let before = || {
            drop(begin(dir.path(), Some(1)));
            let info = RunInfo::read(dir.path()).unwrap();
            assert!(info.started == 1000.0 && info.process_started > Some(1.0e9) && info.ended.is_none());
            assert_eq!(info.worked(info.process_started.unwrap() + 5.0), info.worked_before + 5.0);
            info.worked_before
        };
        write(&|info| info.ended = Some(1029.0));
        assert_eq!(before(), 29.0);
        write(&|info| (info.process_started, info.worked_before, info.ended) = (Some(3000.0), 29.0, Some(3011.0)));
        assert_eq!(before(), 40.0);
        // The run was killed; its last phase began at this time.
        write(&|info| (info.process_started, info.worked_before) = (Some(3000.0), 29.0));
        std::fs::write(dir.path().join(crate::PHASE), r#"{"step":5,"phase":"gen","time":3021.5}"#).unwrap();
        assert_eq!(before(), 50.5);
        // An old version recorded fewer fields.
        let mut old = serde_json::to_value(RunInfo { ended: Some(1700.0), ..RunInfo::read(dir.path()).unwrap() }).unwrap();
        old.as_object_mut().unwrap().retain(|key, _| !["process_started", "worked_before"].contains(&key.as_str()));
        std::fs::write(dir.path().join(crate::INFO), old.to_string()).unwrap();
        assert_eq!(before(), 700.0);
    }

    /// All record files of a run are read back, with numbers that JSON lacks.
    #[test]
    fn record_files_come_back_with_every_number() {
        fn read<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> String {
            let text = serde_json::to_string(value).unwrap();
            let back: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            // Compared as text, since NaN is not equal to itself.
            assert_eq!(serde_json::to_string(&back).unwrap(), text);
            text
        }
        let dir = tempfile::tempdir().unwrap();
        for (number, word) in
            [(f64::NAN, "\"NaN\""), (f64::INFINITY, "\"Infinity\""), (f64::NEG_INFINITY, "\"-Infinity\""), (0.5, "0.5")]
        {
            let best = BestSoFar { metric: "m".into(), value: number, step: 1 };
            let info = RunInfo {
                started: number,
                process_started: Some(number),
                worked_before: number,
                ended: Some(number),
                best: Some(best),
                cwd: OsString::from_vec(vec![b'/', 0xff]).into(),
                ..RunInfo::new("ppo", "p", "e")
            };
            let sample = Sample {
                score: Some(number),
                advantage: Some(number),
                log_probs: vec![number as f32; 2],
                advantages: Some(vec![number as f32]),
                components: [("a".to_owned(), burnish_util::json_number::to_value(number))].into_iter().collect(),
                ..serde_json::from_value(
                    serde_json::json!({"step": 1, "kind": "val", "prompt": "", "response": "", "score": null,
                    "advantage": null, "ground_truth": null, "data_source": "", "components": {}, "finish": "stop", "tokens": [],
                    "log_probs": [], "advantages": null}),
                )
                .unwrap()
            };
            let phase = Phase { time: number, ..Phase::default() };
            for (text, count) in [(read(&info), 5), (read(&sample), 6), (read(&phase), 1)] {
                assert_eq!(text.matches(word).count(), count, "{text}");
            }
            info.write(dir.path()).unwrap();
            assert_eq!(RunInfo::read(dir.path()).unwrap().cwd, info.cwd);

            // A row of the metrics file has the logged values.
            let mut record = begin(dir.path(), None);
            record.log(1, validated(number));
            let watched = WatchedMetric { metric: None, greater_is_better: true };
            let last = watched.in_file(&dir.path().join("metrics.jsonl"), 0..=1).last.unwrap();
            assert!(last == number || last.is_nan() && number.is_nan());
            record.end(1, None, &Err(anyhow!("after it")));
            let info = RunInfo::read(dir.path()).unwrap();
            assert_eq!((info.state, info.error.as_deref()), (RunState::Failed, Some("after it")));
            assert_eq!(info.best.is_some(), !number.is_nan(), "NaN is never the best");
        }
    }

    /// An unreachable server delays the process, not the record.
    #[test]
    fn the_end_is_recorded_before_anybody_is_told() {
        struct Looks(PathBuf, Arc<Mutex<Vec<RunState>>>);
        impl Tracker for Looks {
            fn log(&mut self, _: u64, _: &Metrics) -> Result<()> {
                Ok(())
            }
            fn table(&mut self, _: u64, _: &StepTable) -> Result<()> {
                Ok(())
            }
            fn finish(&mut self, _: &Ending) -> Result<()> {
                self.1.lock().unwrap().push(RunInfo::read(&self.0)?.state);
                Ok(())
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let seen = Arc::default();
        for result in [Ok(()), Err(anyhow!("no")), Err(Interrupted("stop".into()).into())] {
            let mut record = begin(dir.path(), None);
            record.trackers.add("looks", Box::new(Looks(dir.path().to_owned(), Arc::clone(&seen))));
            record.end(1, None, &result);
        }
        assert_eq!(*seen.lock().unwrap(), [RunState::Finished, RunState::Failed, RunState::Interrupted]);
    }

    #[test]
    fn failures_and_panics_leave_the_phase() {
        let dir = tempfile::tempdir().unwrap();
        let left = |error: &str| {
            let info = RunInfo::read(dir.path()).unwrap();
            assert!(info.error.as_ref().is_some_and(|text| text.contains(error)), "{info:?}");
            (info.state, info.step, info.phase.unwrap())
        };
        let mut record = begin(dir.path(), None);
        record.stage().step(3);
        record.stage().enter("reward");
        record.end(2, None, &Err(anyhow!("no server")));
        assert_eq!(left("no server"), (RunState::Failed, 2, "reward".to_owned()));

        let record = begin(dir.path(), None);
        record.stage().step(7);
        record.stage().enter("update_actor");
        assert_eq!(Phase::read(dir.path()).map(|at| (at.step, at.phase)), Some((7, "update_actor".to_owned())));
        let panicking = catch_unwind(AssertUnwindSafe(|| {
            let _record = record;
            panic!("for the test");
        }));
        assert!(panicking.is_err());
        assert_eq!(left("panicked"), (RunState::Failed, 6, "update_actor".to_owned()));
    }
    #[test]
    fn a_run_without_a_signal_recommends_its_best_checkpoint_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = begin(dir.path(), None);
        let lines = |record: &Record, no_signal| {
            let saved = dir.path().join("global_step_20");
            record.folder.as_ref().unwrap().summary(20, Some(&saved), &record.validations, no_signal).join("\n")
        };
        let no_signal = Some("every advantage is 0");
        assert!(lines(&record, None).contains("export") && lines(&record, None).contains("global_step_20"));
        let unknown = lines(&record, no_signal);
        assert!(unknown.contains("no signal: every advantage is 0") && !unknown.contains("export"), "{unknown}");
        record.log(0, validated(0.5));
        record.log(1, validated(0.5));
        let never = lines(&record, no_signal);
        assert!(never.contains("never better than before training") && !never.contains("export"), "{never}");
        for (step, value) in [(2, 0.75), (20, 0.0)] {
            record.log(step, validated(value));
        }
        let gone = lines(&record, no_signal);
        assert!(gone.contains("\nval acc 0.5000 → 0.000 (best 0.7500 at step 2)\n"), "{gone}");
        assert!(gone.contains("best validation was at step 2") && !gone.contains("export"), "{gone}");
        std::fs::create_dir(dir.path().join("global_step_2")).unwrap();
        let best = lines(&record, no_signal);
        assert!(best.contains("global_step_2 ") && !best.contains("global_step_20"), "{best}");
        record.log(20, validated(0.75));
        assert!(lines(&record, no_signal).contains("global_step_20"), "as good as the best");
        record.end(20, None, &Ok(()));
    }
}
