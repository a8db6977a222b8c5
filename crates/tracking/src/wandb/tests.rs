use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::folder::file_name;
use super::log::{self, Log};
use super::records::{self, RunFields, kind};
use super::resumed_log::ResumedLog;
use super::run::Wandb;
use super::settings::WandbSettings;
use crate::{Cell, Ending, Exit, StepTable, TrackedRun, Tracker};
use burnish_util::protobuf::{ProtobufMessage, bytes_of};

/// Opens a run like `open` of [`TRACKER`](super::TRACKER), but without reading the environment.
fn offline(session: &TrackedRun) -> Wandb {
    let settings = WandbSettings::from_environment_of(session, |_| None).unwrap();
    Wandb::open(session, &settings).unwrap()
}

fn log(tracker: &mut Wandb, steps: std::ops::RangeInclusive<u64>) {
    for step in steps {
        if step % 2 == 0 {
            let table = StepTable {
                name: "texts",
                columns: vec!["query".into()],
                rows: vec![vec![Cell::Number(step as f64)]],
                brief: Vec::new(),
            };
            tracker.table(step, &table).unwrap();
        }
        let value = step as f64 / 3.0;
        let metrics = [("a/b", value), ("nan", f64::NAN), ("inf", f64::INFINITY), ("long", value.exp())];
        tracker.log(step, &metrics.into_iter().collect()).unwrap();
    }
}

fn file(session: &TrackedRun) -> PathBuf {
    let folder = session.dir.join("wandb").join(session.remembered("wandb").unwrap());
    folder.join(file_name(&session.run_id))
}

/// Step, value of `a/b`, and true if the row refers to a table.
type Row = (u64, f64, bool);

/// Returns all rows of a log, and its exit record.
fn rows(path: &Path) -> (Vec<Row>, Option<Vec<u8>>) {
    let bytes = fs::read(path).unwrap();
    let (mut rows, mut exit, mut end) = (Vec::new(), None, 0);
    for (number, (at, record)) in (1..).zip(log::records(&bytes)) {
        assert_eq!(burnish_util::protobuf::fields(&record).next(), Some((1, burnish_util::protobuf::WireValue::Varint(number))));
        assert_eq!(exit, None, "nothing comes after the exit");
        if let Some(row) = bytes_of(&record, kind::HISTORY) {
            assert_eq!(records::value_of(row, "nan"), Some("NaN"));
            let value = records::value_of(row, "a/b").unwrap().parse().unwrap();
            rows.push((records::step_of(row).unwrap(), value, records::value_of(row, "texts").is_some()));
        }
        exit = bytes_of(&record, kind::EXIT).map(<[u8]>::to_vec);
        end = at;
    }
    assert_eq!(end, bytes.len(), "no torn tail");
    (rows, exit)
}

fn expected(steps: std::ops::RangeInclusive<u64>) -> Vec<Row> {
    steps.map(|step| (step, step as f64 / 3.0, step % 2 == 0)).collect()
}

/// The expected record, chunk by chunk, was written by the PyPI client (0.31.0) for a row with the single metric 0.1 + 0.2 at
/// step
/// 1. The test also covers the client's way of splitting a record that does not fit into the block.
#[test]
fn bytes_are_those_of_the_client() {
    let bytes = include_bytes!("fixture.wandb");
    let whole: Vec<_> = log::records(bytes).collect();
    assert_eq!(whole.last().unwrap().0, bytes.len());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.wandb");
    Log::create(&path).unwrap().append(whole.iter().map(|(_, record)| record.as_ref())).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);

    let row = whole.iter().find_map(|(_, record)| bytes_of(record, kind::HISTORY)).unwrap();
    let values = ["actor/loss", "_timestamp", "_runtime", "_step"].map(|key| (key, records::value_of(row, key).unwrap()));
    assert_eq!((values[0].1, records::step_of(row)), ("0.30000000000000004", Some(1)));
    // The client's order comes from a Go map, so it is arbitrary.
    let mut order: Vec<_> = values.to_vec();
    order.sort_by_key(|(key, _)| row.windows(key.len()).position(|window| window == key.as_bytes()));
    let mut items = ProtobufMessage::default();
    order.iter().for_each(|(key, value)| records::item(&mut items, &[key], value));
    assert_eq!(records::history(items.into_bytes(), 1), row);

    let run = whole.iter().find_map(|(_, record)| bytes_of(record, kind::RUN)).unwrap();
    let time = bytes_of(run, 17).unwrap();
    let [seconds, nanos] = burnish_util::protobuf::fields(time).map(|(_, value)| value).collect::<Vec<_>>().try_into().unwrap();
    let (burnish_util::protobuf::WireValue::Varint(seconds), burnish_util::protobuf::WireValue::Varint(nanos)) = (seconds, nanos)
    else {
        panic!()
    };
    let started = UNIX_EPOCH + Duration::new(seconds, nanos as u32);
    let host = String::from_utf8(bytes_of(run, 13).unwrap().to_vec()).unwrap();
    let tags = ["t1".to_owned(), "t2".to_owned()];
    let about = RunFields {
        id: "abc12345",
        entity: "ent",
        project: "proj",
        name: "exp",
        group: "g",
        job_type: "jt",
        notes: "n",
        tags: &tags,
        host: &host,
    };
    let config = serde_json::json!({"_wandb": {}, "lr": 0.5, "text": "x".repeat(33_000)});
    let ours = records::run(&about, &config, started).unwrap();
    // After these bytes the client lists which of its features are in use.
    assert_eq!(ours, run[..ours.len()]);
}

#[test]
fn a_run_killed_at_any_byte_resumes_to_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let session = |resumed_step| TrackedRun::in_folder(dir.path().into(), resumed_step);
    let mut tracker = offline(&session(None));
    log(&mut tracker, 1..=6);
    tracker.finish(&Ending::uninterrupted(Exit::Interrupted)).unwrap();
    let path = file(&session(None));
    let whole = fs::read(&path).unwrap();
    assert_eq!(rows(&path).0, expected(1..=6));

    // A resumed run finds at least this much, because its checkpoint comes after the row of its step.
    let start = log::records(&whole).nth(2).unwrap().0;
    let ends: Vec<(usize, u64)> = log::records(&whole)
        .filter_map(|(end, record)| Some((end, records::step_of(bytes_of(&record, kind::HISTORY)?)?)))
        .collect();
    for cut in start..=whole.len() {
        let last = ends.iter().filter(|(end, _)| *end <= cut).map(|(_, step)| *step).max().unwrap_or(0);
        for last in [last, last / 2] {
            let kept = ResumedLog::find(&whole[..cut], last).unwrap();
            let end = ends.iter().find(|(_, step)| *step == last).map_or(start, |(end, _)| *end);
            assert_eq!((kept.end, kept.last_step.unwrap_or(0)), (end, last), "cut at {cut}");
            // The remaining checks take time, for threads and synced files.
            if cut % 397 != 0 && cut != whole.len() {
                continue;
            }
            fs::write(&path, &whole[..cut]).unwrap();
            let mut tracker = offline(&session(Some(last)));
            log(&mut tracker, last + 1..=7);
            tracker.finish(&Ending::uninterrupted(Exit::Finished)).unwrap();
            let (found, exit) = rows(&path);
            assert_eq!(found, expected(1..=7), "cut at {cut}, resumed at {last}");
            assert_eq!(exit.as_deref(), Some(b"\x08\0\x10\0".as_slice()));
        }
    }
    // Before the run's own record is complete, there is nothing to resume.
    fs::write(&path, &whole[..start / 4]).unwrap();
    let mut tracker = offline(&session(Some(0)));
    log(&mut tracker, 1..=2);
    tracker.finish(&Ending::uninterrupted(Exit::Failed)).unwrap();
    assert_eq!(rows(&file(&session(None))).0, expected(1..=2));
}
