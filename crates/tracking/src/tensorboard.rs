//! TensorBoard event files: records of protocol buffers, encoded by hand because only a few fields are needed.
//!
//! A record is `length: u64, masked crc32c(length), event, masked crc32c(event)`, little endian. Every process writes its own
//! event file. Its first events are the format version and a session start. At a session start, TensorBoard discards the data
//! that earlier files have for that step and later ones. So a resumed run replaces the steps that it repeats, and a fresh run
//! replaces everything.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Cell, Ending, Metrics, StepTable, TrackedRun, Tracker, TrackerEntry};
use burnish_util::crc::CASTAGNOLI;
use burnish_util::protobuf::ProtobufMessage;
use burnish_util::time::unix_time;

pub(super) const TRACKER: TrackerEntry = TrackerEntry {
    name: "tensorboard",
    doc: "Event files for TensorBoard in $TENSORBOARD_DIR, else <default_local_dir>/tensorboard; tables as texts",
    reads: &[],
    open: |session| Ok(Box::new(EventFile::create(session)?)),
};

struct EventFile {
    path: PathBuf,
    file: File,
    /// Length of the complete records. After a failed write, the file is cut here: TensorBoard reads nothing after a torn record.
    length: u64,
    torn: bool,
    /// Records that could not be written yet.
    waiting: Vec<u8>,
}

impl EventFile {
    fn create(session: &TrackedRun) -> Result<Self> {
        let chosen = std::env::var_os("TENSORBOARD_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let dir = chosen.unwrap_or_else(|| session.dir.join("tensorboard"));
        let (path, file) = create_new(&dir).with_context(|| format!("cannot create an event file in {}", dir.display()))?;
        let mut events = Self { path, file, length: 0, torn: false, waiting: Vec::new() };
        events.write(&event(unix_time(), 0, |event| event.bytes(3, b"brain.Event:2")))?;
        let first_step = session.resumed_step.map_or(0, |step| step + 1);
        events.write(&event(unix_time(), first_step, |event| {
            event.bytes(7, &ProtobufMessage::encode(|session_log| session_log.varint(1, 1)))
        }))?;
        Ok(events)
    }

    /// Appends an event; if the file cannot be written, the event is kept for the next call.
    fn write(&mut self, event: &[u8]) -> Result<()> {
        self.waiting.extend(record(event));
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut write = || {
            if self.torn {
                self.file.set_len(self.length)?;
            }
            self.torn = true;
            self.file.write_all(&self.waiting)
        };
        write().with_context(|| format!("cannot write to {}; its rows are kept in memory", self.path.display()))?;
        self.torn = false;
        self.length += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

impl Tracker for EventFile {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.write(&event(unix_time(), step, |event| event.bytes(5, &summary(metrics))))
    }

    fn table(&mut self, step: u64, table: &StepTable) -> Result<()> {
        self.write(&event(unix_time(), step, |event| event.bytes(5, &text(table.name, &markdown(table)))))
    }

    fn finish(&mut self, _: &Ending) -> Result<()> {
        self.flush()
    }
}

/// Creates an event file. TensorBoard reads the files of a directory in the order of their names, so they begin with the time.
fn create_new(dir: &Path) -> io::Result<(PathBuf, File)> {
    fs::create_dir_all(dir)?;
    let (seconds, pid) = (unix_time() as u64, std::process::id());
    for number in 0.. {
        let path = dir.join(format!("events.out.tfevents.{seconds:010}.burnish.{pid}.{number:03}"));
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns a `tensorflow.Event`: wall_time = 1, step = 2, and the field that `fill` adds (file_version = 3, summary = 5,
/// session_log = 7).
fn event(wall_time: f64, step: u64, fill: impl FnOnce(&mut ProtobufMessage)) -> Vec<u8> {
    ProtobufMessage::encode(|event| {
        event.fixed64(1, wall_time.to_bits());
        event.varint(2, step);
        fill(event);
    })
}

/// Returns a `tensorflow.Summary`: value = 1, repeated, each with tag = 1 and simple_value = 2.
fn summary(metrics: &Metrics) -> Vec<u8> {
    let value = |name: &str, number: f64| {
        ProtobufMessage::encode(|value| {
            value.bytes(1, name.as_bytes());
            value.fixed32(2, (number as f32).to_bits());
        })
    };
    ProtobufMessage::encode(|summary| metrics.iter().for_each(|(name, number)| summary.bytes(1, &value(name, number))))
}

/// Returns a `tensorflow.Summary` with one text, in the form that TensorBoard's text plugin reads. Its value has tag = 1, tensor
/// = 8 and metadata = 9. The tensor has dtype = 1 (7 is a string), tensor_shape = 2 of one dim = 2 with size = 1, and string_val
/// = 8. The metadata has plugin_data = 1 with plugin_name = 1.
fn text(name: &str, text: &str) -> Vec<u8> {
    let dim = ProtobufMessage::encode(|dim| dim.varint(1, 1));
    let shape = ProtobufMessage::encode(|shape| shape.bytes(2, &dim));
    let tensor = ProtobufMessage::encode(|tensor| {
        tensor.varint(1, 7);
        tensor.bytes(2, &shape);
        tensor.bytes(8, text.as_bytes());
    });
    let plugin = ProtobufMessage::encode(|plugin| plugin.bytes(1, b"text"));
    let value = ProtobufMessage::encode(|value| {
        value.bytes(1, name.as_bytes());
        value.bytes(8, &tensor);
        value.bytes(9, &ProtobufMessage::encode(|metadata| metadata.bytes(1, &plugin)));
    });
    ProtobufMessage::encode(|summary| summary.bytes(1, &value))
}

/// Returns a table in Markdown, which TensorBoard renders.
fn markdown(table: &StepTable) -> String {
    let cell =
        |cell: &Cell| cell.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('|', "&#124;").replace('\n', "<br>");
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(table.columns.clone());
    text.push_str(&line(vec!["---".to_owned(); table.columns.len()]));
    text.extend(table.rows.iter().map(|row| line(row.iter().map(cell).collect())));
    text
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked_crc(&length).to_le_bytes(), data, &masked_crc(data).to_le_bytes()].concat()
}

/// Returns the masked checksum of TFRecord. Masking keeps checksums sound for data that itself contains checksums.
fn masked_crc(data: &[u8]) -> u32 {
    CASTAGNOLI.checksum(data).rotate_right(15).wrapping_add(0xA282_EAD8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes were written by TensorBoard 2.21's own classes.
    #[test]
    fn bytes_are_those_tensorboard_writes() {
        assert_eq!(record(b"hello"), [b"\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3e".as_slice(), b"hello\xbb\x1f\x1c\x19"].concat());
        let metrics: Metrics = [("a/b", 0.5)].into_iter().collect();
        let event = event(1.5, 300, |event| event.bytes(5, &summary(&metrics)));
        assert_eq!(event, b"\x09\0\0\0\0\0\0\xf8\x3f\x10\xac\x02\x2a\x0c\x0a\x0a\x0a\x03a/b\x15\0\0\0\x3f");
        let expected = b"\n\x1e\n\x01tB\x0f\x08\x07\x12\x04\x12\x02\x08\x01B\x05| a |J\x08\n\x06\n\x04text";
        assert_eq!(text("t", "| a |"), expected);
    }

    /// A file that is open for reading fails each write, like a full disk.
    #[test]
    fn no_record_follows_a_torn_one_and_none_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = create_new(dir.path()).unwrap();
        let mut events = EventFile { path: path.clone(), file, length: 0, torn: false, waiting: Vec::new() };
        events.write(b"one").unwrap();
        let file = std::mem::replace(&mut events.file, File::open(&path).unwrap());
        assert!(events.write(b"two").is_err());
        (&file).write_all(b"the beginning of a record").unwrap();
        events.file = file;
        events.write(b"three").unwrap();
        let expected = [record(b"one"), record(b"two"), record(b"three")].concat();
        assert!(fs::read(&path).unwrap() == expected);
    }

    #[test]
    fn tables_are_markdown_whatever_their_texts() {
        let rows = vec![vec!["1|2\n<b>".into(), "&".into()]];
        let table = StepTable { name: "texts", columns: vec!["query".into(), "response".into()], rows, brief: Vec::new() };
        assert_eq!(markdown(&table), "| query | response |\n| --- | --- |\n| 1&#124;2<br>&lt;b> | &amp; |\n");
    }
}
