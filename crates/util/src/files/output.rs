//! Resolves the target of an output. Links are followed. A target that is not a regular file (a device, a pipe, the process's own
//! output) is written into and never replaced.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::platform::{self, file_of, is_pipe, is_same_file};

/// The longest chain of links that Linux follows.
const MAX_LINKS: usize = 40;

/// The target of an output path.
pub(crate) enum OutputTarget {
    /// A regular file, which may be replaced, with its metadata; `None` if the file does not exist yet.
    File { path: PathBuf, existing: Option<Metadata> },
    /// Any other target.
    Stream(OutputStream),
}

/// A target that is written from its current position.
pub enum OutputStream {
    /// Standard output or error under any name, including a file they are redirected to. Keeps the order of the process's output.
    Opened(File),
    /// A device, a named pipe or a socket.
    Other(PathBuf, FileType),
}

impl OutputTarget {
    /// Returns the target of a path.
    ///
    /// # Errors
    /// If the path is a folder, links form a cycle, or the path cannot be inspected.
    pub(crate) fn resolve(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(existing) if existing.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(existing) => match output_stream(&existing) {
                Some(stream) => Ok(Self::Stream(OutputStream::Opened(stream))),
                None if existing.is_file() => Ok(Self::File { path: fs::canonicalize(path)?, existing: Some(existing) }),
                None => Ok(Self::Stream(OutputStream::Other(path.to_path_buf(), existing.file_type()))),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::File { path: end_of_links(path)?, existing: None }),
            Err(error) => Err(error),
        }
    }
}

impl OutputStream {
    /// Opens the stream for writing. A named pipe waits up to 5 seconds for a reader.
    ///
    /// # Errors
    /// If the stream cannot be opened, or the pipe has no reader.
    pub fn open(self) -> io::Result<File> {
        match self {
            Self::Opened(file) => {
                io::stdout().flush()?;
                Ok(file)
            }
            Self::Other(path, kind) if is_pipe(kind) => open_pipe(&path),
            Self::Other(path, _) => OpenOptions::new().write(true).open(path),
        }
    }

    /// Fails if the stream cannot be opened. Does not wait for the reader of a pipe.
    pub fn check(self) -> io::Result<()> {
        match &self {
            Self::Other(_, kind) if is_pipe(*kind) => Ok(()),
            _ => self.open().map(drop),
        }
    }
}

/// Time to wait for the reader of a named pipe, and the pause between two attempts.
const WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// Opens a named pipe for writing. A plain open would wait forever for a reader.
fn open_pipe(path: &Path) -> io::Result<File> {
    let start = Instant::now();
    loop {
        match platform::open_pipe(path)? {
            Some(pipe) => return Ok(pipe),
            None if start.elapsed() < WAIT => std::thread::sleep(PAUSE),
            None => return Err(io::Error::new(ErrorKind::InvalidData, "it is a named pipe without a reader")),
        }
    }
}

/// Returns true if a path is a regular file or does not exist yet.
pub fn is_file(path: &Path) -> bool {
    matches!(OutputTarget::resolve(path), Ok(OutputTarget::File { .. }))
}

/// Returns the end of a chain of links, which may be missing.
pub(crate) fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..=MAX_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = at.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("its links form a cycle"))
}

/// Returns the standard stream of this process that is this file, if any.
fn output_stream(there: &Metadata) -> Option<File> {
    let streams = [file_of(io::stdout()), file_of(io::stderr())];
    let is_it = |stream: Metadata| is_same_file(&stream, there);
    streams.into_iter().flatten().find(|stream| stream.metadata().is_ok_and(is_it))
}
