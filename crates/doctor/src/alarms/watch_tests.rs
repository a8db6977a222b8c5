//! Every alarm: made-up rows that raise it at a known step, and rows that look ill and do not.

use serde_json::json;

use super::kept_rows::{FIRST, LAST, VALIDATIONS};
use super::watch::AlarmWatch;
use crate::checks::ALARMS;
use crate::evidence::{Evidence, RunLibrary};
use crate::phase::CheckPhase;

/// A metric as a function of the step.
type Curve = (&'static str, fn(f64) -> f64);

fn empty() -> Evidence {
    Evidence::new(CheckPhase::After, RunLibrary::Verl)
}

/// Follows rows of these curves. A negative infinity is a metric that the row lacks.
fn follow(watch: &mut AlarmWatch, steps: std::ops::RangeInclusive<u64>, curves: &[Curve]) {
    for step in steps {
        let row = curves.iter().map(|(name, value)| (*name, value(step as f64))).filter(|(_, value)| *value != f64::NEG_INFINITY);
        watch.follow(step, row);
    }
}

/// A case: its description, the alarm, steps, curves, and the step of the alarm.
type Case = (&'static str, &'static str, u64, &'static [Curve], Option<u64>);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("one score for all", "constant reward", 30, &[("critic/score/max", |_| 0.7), ("critic/score/min", |_| 0.7)], Some(5)),
    ("one score from step 11", "constant reward", 30, &[("critic/score/max", |s| if s < 11.0 { 1.0 } else { 0.5 }),
        ("critic/score/min", |s| if s < 11.0 { 0.0 } else { 0.5 }), ("critic/score/mean", |_| 0.5)], Some(15)),
    ("solved", "constant reward", 30, &[("critic/score/max", |_| 1.0), ("critic/score/min", |s| if s < 11.0 { 0.0 } else { 1.0 }),
        ("critic/score/mean", |s| (s / 11.0).min(1.0))], None),
    ("equal within steps only", "constant reward", 30, &[("critic/score/max", |s| s), ("critic/score/min", |s| s)], None),
    ("no differences", "no signal", 30, &[("reward/zero_std_ratio", |_| 0.97), ("critic/score/mean", |_| 0.4)], Some(10)),
    ("solved prompts", "no signal", 60, &[("reward/zero_std_ratio", |s| (s / 10.0).min(1.0)), ("critic/score/mean", |s| (s / 10.0).min(1.0))], None),
    ("a gradient of 0", "no signal", 30, &[("reward/zero_std_ratio", |_| 0.1), ("actor/grad_norm", |s| if s < 6.0 { 1.0 } else { 0.0 }),
        ("critic/score/mean", |_| 0.4)], Some(15)),
    ("a slow start", "no signal", 30, &[("reward/zero_std_ratio", |s| if s < 6.0 { 1.0 } else { 0.5 }), ("critic/score/mean", |_| 0.1)], None),
    ("nothing ends", "responses cut", 30, &[("response/truncated_ratio", |_| 1.0)], Some(3)),
    ("half of them end", "responses cut", 30, &[("response/truncated_ratio", |_| 0.5)], None),
    ("a NaN", "NaN", 30, &[("actor/grad_norm", |s| if s == 9.0 { f64::NAN } else { 1.0 })], Some(9)),
    ("a gradient that jumps", "NaN", 40, &[("actor/grad_norm", |s| if s == 33.0 { 50.0 } else { 1.0 })], Some(33)),
    ("a gradient that jumps a little", "NaN", 40, &[("actor/grad_norm", |s| if s == 33.0 { 12.0 } else { 1.0 })], None),
    ("a skipped update", "NaN", 40, &[("actor/grad_norm", |_| 1.0), ("actor/skipped_updates", |s| f64::from(s == 7.0))], Some(7)),
    ("a NaN in a stage", "NaN", 40, &[("train/loss", |s| if s < 4.0 { 1.0 } else { f64::NAN })], Some(4)),
    ("far from the reference", "KL", 30, &[("actor/kl_loss", |s| if s < 20.0 { 0.1 } else { 2.0 })], Some(21)),
    ("one far step", "KL", 30, &[("actor/kl_loss", |s| if s == 20.0 { 9.0 } else { 0.1 })], None),
    ("a KL that grows slowly", "KL", 900, &[("actor/reward_kl_penalty", |s| 0.002 * s)], None),
    ("paid for something else", "score against accuracy", 30, &[("critic/score/mean", |s| s), ("reward/acc/mean", |s| 1.0 - s / 60.0)], Some(10)),
    ("paid for answers", "score against accuracy", 30, &[("critic/score/mean", |s| s), ("reward/acc/mean", |s| s / 30.0)], None),
    ("validated now and then", "score against accuracy", 900, &[("critic/score/mean", |s| s),
        ("val-core/x/acc/mean@1", |s| if s % 100.0 == 0.0 { 1.0 - s / 2000.0 } else { f64::NEG_INFINITY })], Some(400)),
];

#[test]
fn alarms_ring_at_their_step() {
    for (what, name, steps, curves, expected) in CASES {
        let mut watch = AlarmWatch::over(&empty());
        follow(&mut watch, 1..=*steps, curves);
        let at = watch.raised().iter().find(|one| one.alarm.check.name == *name).map(|one| one.step);
        assert_eq!(at, *expected, "{what}");
        let is_said = |one: &super::RaisedAlarm| one.finding.remedy.as_ref().is_some_and(|remedy| !remedy.contains('{'));
        assert!(watch.raised().iter().all(is_said), "{what}");
        // A run that was interrupted anywhere has the same alarms.
        for until in [1, steps / 3, steps / 2, steps - 1] {
            let mut first = AlarmWatch::over(&empty());
            follow(&mut first, 1..=until, curves);
            let mut record = empty();
            record.rows = rows(until, curves);
            let mut resumed = AlarmWatch::over(&record);
            follow(&mut resumed, until + 1..=*steps, curves);
            let told = |watch: &AlarmWatch| {
                watch.raised().iter().map(|one| (one.step, one.finding.sentence.clone())).collect::<Vec<_>>()
            };
            assert_eq!(told(&resumed), told(&watch), "{what}, resumed after {until}");
        }
    }
    let all: Vec<&str> = ALARMS.iter().map(|alarm| alarm.check.name).collect();
    assert!(all.iter().all(|name| CASES.iter().any(|case| case.1 == *name && case.4.is_some())), "{all:?}");
}

fn rows(until: u64, curves: &[Curve]) -> Vec<crate::MetricRow> {
    let row = |step: u64| {
        let values = curves.iter().map(|(name, value)| ((*name).to_owned(), value(step as f64)));
        crate::MetricRow { step, values: values.filter(|(_, value)| *value != f64::NEG_INFINITY).collect() }
    };
    (1..=until).map(row).collect()
}

#[test]
fn a_silenced_alarm_and_other_names() {
    let ill: &[Curve] = &[("response/truncated_ratio", |_| 1.0)];
    let mut watch = AlarmWatch::over(&empty());
    watch.silence("responses cut");
    follow(&mut watch, 1..=9, ill);
    assert!(watch.raised().is_empty());
    let mut record = empty();
    record.settings.insert("trainer.metric_names".to_owned(), json!("trl"));
    let mut watch = AlarmWatch::over(&record);
    follow(&mut watch, 1..=9, &[("completions/clipped_ratio", |_| 1.0)]);
    assert_eq!(watch.raised()[0].alarm.metric(), "alarm/responses_cut");
}

/// The number of rows that a step looks at does not grow with the run.
#[test]
fn long_runs_cost_no_more() {
    let names: Vec<String> = (0..80).map(|i| format!("timing_s/phase_{i}")).collect();
    let mut watch = AlarmWatch::over(&empty());
    for step in 1..=3000u64 {
        let own = [("critic/score/mean", 0.5), ("actor/entropy", 0.4), ("actor/grad_norm", 1.0), ("response_length/mean", 9.0)];
        let validated = [("val-core/x/acc/mean@1", 0.5)].into_iter().filter(|_| step % 10 == 0);
        watch.follow(step, names.iter().map(|name| (name.as_str(), 1.0)).chain(own).chain(validated));
        assert!(watch.rows() <= FIRST + VALIDATIONS + LAST, "step {step}");
    }
    assert!(watch.raised().is_empty() && watch.rows() == FIRST + VALIDATIONS + LAST);
}
