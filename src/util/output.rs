//! Where an output really goes: to the end of all links, and into what is there and is no regular file. A device, a pipe or the
//! process's own output is written into, never replaced.

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};

/// As many links behind each other as Linux follows.
const MOST_LINKS: usize = 40;

/// Where what is written to a path goes.
pub enum Place {
    /// A regular file, which may be replaced, and what is known of it; or nothing yet.
    File { path: PathBuf, there: Option<Metadata> },
    /// Whatever else can be written into.
    Stream(Stream),
}

/// What is written into, from wherever it stands.
pub enum Stream {
    /// The standard output or error stream, by whatever name, a file that they are redirected to included: what the process prints
    /// before and after stays in order.
    Own(File),
    /// A device, a named pipe or a socket.
    Other(PathBuf, FileType),
}

impl Place {
    /// # Errors
    /// A folder, links that lead in a circle, a path that cannot be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(ErrorKind::IsADirectory.into()),
            Ok(there) => match own_output(&there) {
                Some(own) => Ok(Self::Stream(Stream::Own(own))),
                None if there.is_file() => Ok(Self::File { path: fs::canonicalize(path)?, there: Some(there) }),
                None => Ok(Self::Stream(Stream::Other(path.to_path_buf(), there.file_type()))),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::File { path: end_of_links(path)?, there: None }),
            Err(error) => Err(error),
        }
    }
}

impl Stream {
    /// Ready to be written to. A named pipe waits for somebody who reads it.
    pub fn open(self) -> io::Result<File> {
        match self {
            Self::Own(file) => {
                io::stdout().flush()?;
                Ok(file)
            }
            Self::Other(path, _) => OpenOptions::new().write(true).open(path),
        }
    }

    /// Whether it can be opened, as far as that can be told without waiting.
    pub fn check(self) -> io::Result<()> {
        match &self {
            Self::Other(_, kind) if kind.is_fifo() => Ok(()),
            _ => self.open().map(drop),
        }
    }
}

/// Whether a path is that of a regular file, or of nothing yet.
pub fn is_file(path: &Path) -> bool {
    matches!(Place::of(path), Ok(Place::File { .. }))
}

/// The end of a chain of links, whether something is there or not.
pub fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..=MOST_LINKS {
        match fs::read_link(&at) {
            Ok(next) => at = at.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("its links lead in a circle"))
}

/// A standard stream of this process that is this very file.
fn own_output(there: &Metadata) -> Option<File> {
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let is_it = |own: Metadata| (own.dev(), own.ino()) == (there.dev(), there.ino());
    streams.into_iter().flatten().map(File::from).find(|own| own.metadata().is_ok_and(is_it))
}

/// Gives a file the access of the one that it is to replace, as far as this user may: its mode and its owner.
pub fn keep_access(file: &File, there: &Metadata) {
    // In this order: another owner takes bits of the mode away.
    _ = fchown(file, Some(there.uid()), Some(there.gid()));
    _ = file.set_permissions(there.permissions());
}
