//! An append-only JSON-lines file with one object per step. A resumed run continues the file as if it had never stopped.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::fs::write_atomic;
use super::no_follow;
use super::output::OutputTarget;

/// Appends one line per call, each an object with an integer `step`.
#[derive(Debug)]
pub struct StepLog {
    path: PathBuf,
    file: File,
    /// Length of the complete lines in the file; `None` if it cannot be truncated because it is not a regular file (a pipe).
    length: Option<u64>,
    /// Lines that could not be written yet.
    waiting: String,
}

/// The required part of a line; other keys are free.
#[derive(Deserialize)]
struct StepRow {
    step: u64,
}

impl StepLog {
    /// Opens `path` for a run that starts fresh (`None`: an earlier file is emptied) or resumes after `resumed_step`. Drops later
    /// rows, which the resumed run will write again, and a line torn by a kill. The file is replaced atomically. A device or a
    /// pipe is only written to.
    pub fn open(path: &Path, resumed_step: Option<u64>) -> Result<Self> {
        let cannot = || format!("cannot open {}", path.display());
        if let OutputTarget::Stream(stream) = OutputTarget::resolve(path).with_context(cannot)? {
            let file = stream.open().with_context(cannot)?;
            return Ok(Self { path: path.to_path_buf(), file, length: None, waiting: String::new() });
        }
        let earlier = kept_rows(path, resumed_step)?;
        write_atomic(path, earlier.as_bytes())?;
        let file = OpenOptions::new().append(true).open(path).with_context(cannot)?;
        Ok(Self { path: path.to_path_buf(), file, length: Some(earlier.len() as u64), waiting: String::new() })
    }

    /// Opens a file whose name the program chooses, like [`Self::open`]. A file takes the place of a link or a pipe.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open_own(path: &Path, resumed_step: Option<u64>) -> Result<Self> {
        let earlier = kept_rows(path, resumed_step)?;
        no_follow::write(path, earlier.as_bytes())?;
        let file = no_follow::open(path, OpenOptions::new().append(true))?;
        Ok(Self { path: path.to_path_buf(), file, length: Some(earlier.len() as u64), waiting: String::new() })
    }

    /// Appends `line`, which must not contain a line break, and syncs it to disk.
    ///
    /// # Errors
    /// If the file cannot be written. The line is kept for the next call.
    pub fn append(&mut self, line: &str) -> Result<()> {
        self.append_all(&[line])
    }

    /// Appends lines, like [`Self::append`], and syncs once.
    ///
    /// # Errors
    /// If the file cannot be written. All lines are kept for the next call.
    pub fn append_all(&mut self, lines: &[impl AsRef<str>]) -> Result<()> {
        for line in lines {
            self.waiting.push_str(line.as_ref());
            self.waiting.push('\n');
        }
        self.flush()
    }

    /// Writes the kept lines.
    ///
    /// # Errors
    /// The errors of [`Self::append`].
    pub fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // One write: a kill can tear the last line but not mix two lines.
        let written = self.file.write_all(self.waiting.as_bytes());
        match written.and_then(|()| self.length.map_or(Ok(()), |_| self.file.sync_data())) {
            Ok(()) => {
                self.length = self.length.map(|length| length + self.waiting.len() as u64);
                self.waiting.clear();
                Ok(())
            }
            Err(error) => {
                // A partial line must not remain before the complete one that follows later.
                self.length.iter().for_each(|length| _ = self.file.set_len(*length));
                Err(error).with_context(|| format!("cannot write to {}; its rows are kept in memory", self.path.display()))
            }
        }
    }
}

/// Returns the lines of a file, the last of them possibly torn; no lines if the file cannot be read.
pub fn lines(path: &Path) -> impl Iterator<Item = String> {
    // A pipe keeps no lines, and opening one may block forever.
    let file =
        fs::metadata(path).is_ok_and(|existing| existing.is_file()).then(|| File::open(path).ok()).flatten().map(BufReader::new);
    file.into_iter()
        .flat_map(|file| file.split(b'\n').map_while(Result::ok))
        .map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Returns the rows that a resumed run keeps; none for a fresh run.
fn kept_rows(path: &Path, resumed_step: Option<u64>) -> Result<String> {
    resumed_step.map_or(Ok(String::new()), |step| rows_until(path, step))
}

/// Returns the complete lines of `path` with a step up to `last`; no lines if it is not a regular file.
fn rows_until(path: &Path, last: u64) -> Result<String> {
    // Reading a pipe may block forever, and links may form a cycle.
    if !fs::metadata(path).is_ok_and(|existing| existing.is_file()) {
        return Ok(String::new());
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let mut earlier = String::with_capacity(text.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        match serde_json::from_str::<StepRow>(line) {
            Ok(row) if row.step <= last && line.ends_with('\n') => earlier.push_str(line),
            Ok(_) => {}
            Err(_) => tracing::warn!("{}:{}: dropped a line that is not the row of a step", path.display(), number + 1),
        }
    }
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resuming_keeps_exactly_the_rows_up_to_the_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/metrics.jsonl");
        let row = |step: u64| format!("{{\"step\":{step},\"data\":{{\"x\":{step}.5}}}}");
        let mut straight = StepLog::open(&path, None).unwrap();
        (0..6).for_each(|step| straight.append(&row(step)).unwrap());
        let uninterrupted = fs::read(&path).unwrap();

        let mut torn = StepLog::open(&path, None).unwrap();
        (0..5).for_each(|step| torn.append(&row(step)).unwrap());
        torn.file.write_all(b"{\"step\":5,\"da").unwrap();
        let mut resumed = StepLog::open(&path, Some(3)).unwrap();
        (4..6).for_each(|step| resumed.append(&row(step)).unwrap());
        assert_eq!(fs::read(&path).unwrap(), uninterrupted);

        StepLog::open(&path, None).unwrap();
        assert!(fs::read(&path).unwrap().is_empty());
        StepLog::open(&dir.path().join("new.jsonl"), Some(7)).unwrap();
    }

    /// Tests a device only if this user may make one.
    #[test]
    fn a_device_is_written_into() {
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().unwrap();
        let null = dir.path().join("null");
        let made =
            std::process::Command::new("sh").args(["-c", "mknod \"$0\" c 1 3 2>/dev/null && true > \"$0\""]).arg(&null).status();
        if made.unwrap().success() {
            let mut log = StepLog::open(&null, Some(3)).unwrap();
            log.append("{\"step\":4}").unwrap();
            assert!(fs::metadata(&null).unwrap().file_type().is_char_device());
        } else {
            println!("no device is written to: this user may not make one");
        }
    }
}
