//! Follows a growing file of lines: each line is read once.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use burnish_util::platform::is_same_file;

/// A receiver of lines.
pub(crate) trait Lines {
    /// Forgets all lines, because the file was replaced.
    fn clear(&mut self);
    /// Takes a line that begins at this byte. Returns false if the line does not have the format of the file.
    fn line(&mut self, line: &str, at: u64) -> bool;
}

/// Position up to which a file has been read.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    /// The file, kept open: positions given to [`Lines::line`] stay valid, even if a resumed run replaces the file.
    file: Option<File>,
    end: u64,
    /// Number of lines that were rejected, and the byte at which the first of them begins.
    pub damaged: (usize, u64),
}

impl Tail {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, end: 0, damaged: (0, 0) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Switches to another file, if the path differs.
    pub(crate) fn point(&mut self, path: PathBuf, lines: &mut impl Lines) {
        if self.path != path {
            lines.clear();
            *self = Self::new(path);
        }
    }

    /// Returns the file that was read so far.
    pub(crate) fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// Passes on the new lines; an incomplete last line waits for its end. A missing file has no lines.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(&mut self, lines: &mut impl Lines) -> Result<()> {
        self.read_from(0, lines)
    }

    /// Does the same as [`Self::read`] for the last `bytes` of the file only.
    pub(crate) fn read_last(&mut self, bytes: u64, lines: &mut impl Lines) -> Result<()> {
        let length = fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        self.read_from(length.saturating_sub(bytes), lines)
    }

    fn read_from(&mut self, start: u64, lines: &mut impl Lines) -> Result<()> {
        self.follow(start, lines).with_context(|| format!("cannot read {}", self.path.display()))
    }

    fn follow(&mut self, start: u64, lines: &mut impl Lines) -> io::Result<()> {
        // A pipe or a device stores no lines, and opening one may block forever.
        let is_stream = fs::metadata(&self.path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir());
        let file = match is_stream {
            true => None,
            false => match File::open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                file => Some(file?),
            },
        };
        if !self.is_continued_by(file.as_ref())? {
            lines.clear();
            *self = Self { file, end: start, ..Self::new(self.path.clone()) };
        }
        let Some(file) = &self.file else { return Ok(()) };
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(self.end))?;
        let mut line = Vec::new();
        if start > 0 {
            self.end += reader.read_until(b'\n', &mut line)? as u64;
        }
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                return Ok(());
            }
            let text = std::str::from_utf8(&line).map(str::trim_ascii);
            if !text.is_ok_and(|text| text.is_empty() || lines.line(text, self.end)) {
                if line.last() != Some(&b'\n') {
                    return Ok(());
                }
                let first = if self.damaged.0 == 0 { self.end } else { self.damaged.1 };
                self.damaged = (self.damaged.0 + 1, first);
            }
            self.end += length;
        }
    }

    /// Returns true if this is the same file as last time and no byte of it was removed.
    fn is_continued_by(&self, file: Option<&File>) -> io::Result<bool> {
        let (Some(before), Some(now)) = (&self.file, file) else { return Ok(false) };
        let (before, now) = (before.metadata()?, now.metadata()?);
        Ok(is_same_file(&before, &now) && now.len() >= self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[derive(Default)]
    struct Numbers(Vec<(u64, u64)>);

    impl Lines for Numbers {
        fn clear(&mut self) {
            self.0.clear();
        }

        fn line(&mut self, line: &str, at: u64) -> bool {
            let number = line.strip_suffix(';').and_then(|line| line.parse().ok());
            self.0.extend(number.map(|number| (number, at)));
            number.is_some()
        }
    }

    #[test]
    fn only_what_is_new_is_read_and_a_torn_line_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        let (mut tail, mut numbers) = (Tail::new(path.clone()), Numbers::default());
        let mut read = |tail: &mut Tail| {
            tail.read(&mut numbers).unwrap();
            numbers.0.clone()
        };
        assert_eq!(read(&mut tail), []);
        fs::write(&path, b"1;\n\nbad\n\xff;\n2").unwrap();
        assert_eq!(read(&mut tail), [(1, 0)]);
        let append = |text: &str| fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
        append("3;");
        let whole = [(1, 0), (23, 11)];
        assert_eq!(read(&mut tail), whole, "a last line that is whole needs no line break");
        append("\n4;\n");
        assert_eq!(read(&mut tail), [&whole[..], &[(4, 15)]].concat());
        assert_eq!(tail.damaged, (2, 4));
        fs::write(&path, "5;\n").unwrap();
        assert_eq!((read(&mut tail), tail.damaged), (vec![(5, 0)], (0, 0)), "a shorter file is another one");
        fs::write(dir.path().join("next"), "6;\n7;\n8;\n").unwrap();
        fs::rename(dir.path().join("next"), &path).unwrap();
        assert_eq!(read(&mut tail), [(6, 0), (7, 3), (8, 6)]);
        let mut last = Numbers::default();
        Tail::new(path).read_last(5, &mut last).unwrap();
        assert_eq!(last.0, [(8, 6)]);
    }
}
