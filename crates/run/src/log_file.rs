//! trainer.log: everything that is logged, with times, in the folder of the run.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use burnish_util::excerpt::cut_lines;
use burnish_util::no_follow;
use burnish_util::printable::printable;
use burnish_util::secret::hide;

/// Name of the file in the run's folder.
pub const LOG: &str = "trainer.log";

/// Log file of the process; clones share it. Lines that are logged before its folder is known are kept until then.
#[derive(Clone, Debug, Default)]
pub struct LogFile(Arc<Mutex<Place>>);

#[derive(Debug)]
enum Place {
    Unknown(Vec<u8>),
    File(File),
}

impl Default for Place {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

/// Largest number of bytes kept until the file is open.
const WAITING: usize = 1 << 20;

impl LogFile {
    /// Opens the file in this folder and writes the lines kept so far. A resumed run appends; a fresh run replaces the contents.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(&self, dir: &Path, is_resumed: bool) -> Result<()> {
        self.open_at(&dir.join(LOG), is_resumed)
    }

    /// Opens the log file of another rank in the same folder, such as `trainer-rank3.log`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open_of_rank(&self, dir: &Path, rank: usize, is_resumed: bool) -> Result<()> {
        self.open_at(&dir.join(format!("trainer-rank{rank}.log")), is_resumed)
    }

    fn open_at(&self, path: &Path, is_resumed: bool) -> Result<()> {
        let mut file = no_follow::open(path, OpenOptions::new().append(true).create(true))?;
        let mut begin = || -> io::Result<()> {
            if !is_resumed {
                file.set_len(0)?;
            }
            if let Place::Unknown(waiting) = &*self.lock() {
                file.write_all(waiting)?;
            }
            Ok(())
        };
        begin().with_context(|| format!("cannot write {}", path.display()))?;
        *self.lock() = Place::File(file);
        Ok(())
    }

    /// Returns a writer for `tracing_subscriber`.
    pub fn writer(&self) -> LogLine {
        LogLine(self.clone())
    }

    /// Writes a line, such as the error that ends the process.
    pub fn line(&self, line: &str) {
        _ = self.writer().write_all(format!("{line}\n").as_bytes());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A writer to a [`LogFile`]. Lines that cannot be written are dropped: they are on standard error too.
#[derive(Debug)]
pub struct LogLine(LogFile);

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Control characters are escaped, because `cat` and `tail` will show the file on a terminal.
        let text = String::from_utf8_lossy(bytes);
        let text = hide(&text);
        let text = cut_lines(&text);
        let line = printable(&text);
        match &mut *self.0.lock() {
            Place::Unknown(waiting) if waiting.len() < WAITING => waiting.extend(line.as_bytes()),
            Place::Unknown(_) => {}
            Place::File(file) => _ = file.write_all(line.as_bytes()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_logged_before_the_folder_was_known_is_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let text = || std::fs::read_to_string(dir.path().join(LOG)).unwrap();
        let log = LogFile::default();
        log.line("early");
        log.open(dir.path(), false).unwrap();
        log.line("late");
        assert_eq!(text(), "early\nlate\n");
        LogFile::default().open(dir.path(), true).unwrap();
        assert_eq!(text(), "early\nlate\n");
        LogFile::default().open(dir.path(), false).unwrap();
        assert_eq!(text(), "");
    }
}
