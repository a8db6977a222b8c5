//! Records of a W&B run, as protocol buffers of the client's `wandb_internal.proto`. Numbers in these comments are its field
//! numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde_json::Value;

use burnish_util::platform;
use burnish_util::protobuf::{ProtobufMessage, WireValue, bytes_of, fields};
use burnish_util::secret::hide;

/// Kinds of records, as field numbers of `Record`.
pub(super) mod kind {
    pub(crate) const HISTORY: u64 = 2;
    pub(crate) const SUMMARY: u64 = 3;
    pub(crate) const CONFIG: u64 = 5;
    pub(crate) const FILES: u64 = 6;
    pub(crate) const STATS: u64 = 7;
    pub(crate) const RUN: u64 = 17;
    pub(crate) const EXIT: u64 = 18;
    pub(crate) const HEADER: u64 = 21;
    pub(crate) const PREEMPTING: u64 = 23;
    pub(crate) const ENVIRONMENT: u64 = 26;
}

/// Encodes a `Record`: num = 1, and the body in the field of its kind.
pub(super) fn record(number: u64, kind: u64, body: &[u8]) -> Vec<u8> {
    ProtobufMessage::encode(|record| {
        record.varint(1, number);
        record.bytes(kind, body);
    })
}

/// Encodes a `HeaderRecord`: version_info = 1 with producer = 1 and min_consumer = 2, the oldest client that can read the file.
pub(super) fn header() -> Vec<u8> {
    ProtobufMessage::encode(|header| {
        header.message(1, |version| {
            version.text(1, concat!("burnish ", env!("CARGO_PKG_VERSION")));
            version.text(2, "0.70.0");
        });
    })
}

/// Fields of a `RunRecord` that this program fills.
#[derive(Debug, Default)]
pub(super) struct RunFields<'a> {
    pub id: &'a str,
    pub(crate) entity: &'a str,
    pub project: &'a str,
    pub name: &'a str,
    pub group: &'a str,
    pub(crate) job_type: &'a str,
    pub notes: &'a str,
    pub tags: &'a [String],
    pub host: &'a str,
}

/// Encodes a `RunRecord`.
pub(super) fn run(about: &RunFields, config: &Value, started: SystemTime) -> Result<Vec<u8>> {
    let config = self::config(config)?;
    Ok(ProtobufMessage::encode(|run| {
        let texts = [(1, about.id), (2, about.entity), (3, about.project)];
        texts.iter().for_each(|(field, text)| run.text(*field, text));
        run.bytes(4, &config);
        let texts = [(6, about.group), (7, about.job_type), (8, about.name), (9, about.notes)];
        texts.iter().for_each(|(field, text)| run.text(*field, text));
        about.tags.iter().for_each(|tag| run.text(10, tag));
        run.text(13, about.host);
        run.bytes(17, &timestamp(started));
    }))
}

/// Encodes a `ConfigRecord`: update = 1 for every key of an object, with key = 1 and value_json = 16.
pub(super) fn config(config: &Value) -> Result<Vec<u8>> {
    let mut record = ProtobufMessage::default();
    for (key, value) in config.as_object().into_iter().flatten() {
        let value = serde_json::to_vec(value)?;
        record.message(1, |item| {
            item.text(1, key);
            item.bytes(16, &value);
        });
    }
    Ok(record.into_bytes())
}

/// Encodes a `google.protobuf.Timestamp`.
pub(super) fn timestamp(time: SystemTime) -> Vec<u8> {
    let elapsed = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    ProtobufMessage::encode(|timestamp| {
        timestamp.varint(1, elapsed.as_secs());
        timestamp.varint(2, elapsed.subsec_nanos().into());
    })
}

/// Adds one item to a `HistoryRecord` or `SummaryRecord`. Items are field 1: nested_key = 2, repeated, value_json = 16.
pub(super) fn item(items: &mut ProtobufMessage, keys: &[&str], json: &str) {
    items.message(1, |item| {
        keys.iter().for_each(|key| item.bytes(2, key.as_bytes()));
        item.bytes(16, json.as_bytes());
    });
}

/// Returns the shortest text that reads back as the same `f64`. The three values that JSON lacks are written as Python and the
/// client write them.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        // Scientific notation, because decimals would be hundreds of digits.
        _ => format!("{value:?}"),
    }
}

/// Encodes a `HistoryRecord` with these items: step = 2 with num = 1.
pub(super) fn history(items: Vec<u8>, step: u64) -> Vec<u8> {
    let mut history = ProtobufMessage::with(items);
    history.message(2, |number| number.varint(1, step));
    history.into_bytes()
}

/// Returns the step of a `HistoryRecord`.
pub(super) fn step_of(history: &[u8]) -> Option<u64> {
    let step = bytes_of(history, 2)?;
    let number = fields(step).find_map(|(field, value)| match value {
        WireValue::Varint(number) if field == 1 => Some(number),
        _ => None,
    });
    // Zero is the default and may be omitted.
    Some(number.unwrap_or(0))
}

/// Returns the value of an item of a `HistoryRecord`, as JSON.
pub(super) fn value_of<'a>(history: &'a [u8], key: &str) -> Option<&'a str> {
    fields(history).find_map(|(field, value)| match value {
        WireValue::Bytes(item) if field == 1 && bytes_of(item, 2) == Some(key.as_bytes()) => {
            bytes_of(item, 16).and_then(|json| std::str::from_utf8(json).ok())
        }
        _ => None,
    })
}

/// Encodes a `StatsRecord`: timestamp = 2, item = 3 with key = 1 and value_json = 16.
pub(super) fn stats(time: SystemTime, values: &[(String, f64)]) -> Vec<u8> {
    ProtobufMessage::encode(|stats| {
        stats.bytes(2, &timestamp(time));
        for (name, value) in values {
            stats.message(3, |item| {
                item.text(1, name);
                item.text(16, &number(*value));
            });
        }
    })
}

/// Encodes a `FilesRecord` of one file: files = 1 with path = 1 (relative to the run's `files`) and type = 3, where 2 is media.
/// The client uploads the file at once.
pub(super) fn file(path: &str) -> Vec<u8> {
    ProtobufMessage::encode(|files| {
        files.message(1, |file| {
            file.text(1, path);
            file.varint(3, 2);
        });
    })
}

/// Encodes a `RunExitRecord`: exit_code = 1, runtime = 2.
pub(super) fn exit(code: u64, runtime: Duration) -> Vec<u8> {
    ProtobufMessage::encode(|exit| {
        exit.varint(1, code);
        exit.varint(2, runtime.as_secs());
    })
}

/// Encodes an `EnvironmentRecord`, which the server shows as a run's overview: os = 1, started_at = 3, args = 5, program = 6,
/// host = 12, cpu_count = 16, cpu_count_logical = 17, memory = 21 with total = 1 (bytes), writer_id = 199.
pub(super) fn environment(writer: &str, host: &str, started: SystemTime) -> Vec<u8> {
    let mut arguments = std::env::args_os().map(|argument| hide(&argument.to_string_lossy()).into_owned());
    let program = arguments.next().unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get() as u64);
    ProtobufMessage::encode(|environment| {
        environment.text(1, &platform::system_version());
        environment.bytes(3, &timestamp(started));
        arguments.for_each(|argument| environment.text(5, &argument));
        environment.text(6, &program);
        environment.text(12, host);
        environment.varint(16, cores);
        environment.varint(17, cores);
        environment.message(21, |memory| memory.varint(1, platform::memory_total().unwrap_or(0)));
        environment.text(199, writer);
    })
}
