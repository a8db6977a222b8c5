//! Files whose names the program chooses, in the folders of runs. A link at such a name is not followed: a user who can write to a
//! shared folder could otherwise choose the file that a run overwrites. The file takes the place of the link.
//!
//! Files are read through links: a finished run may consist of links into a store.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use super::foreign;
use super::fs::replace;
use crate::platform::without_links;

/// Number of links that are removed one after another: another process may create the next one.
const TRIES: usize = 10;

/// Opens a regular file with these options, after removing a link at its place.
///
/// # Errors
/// If the path is something else, such as a folder or a pipe, or cannot be opened.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    without_links(options);
    let cannot = || format!("cannot write {}", path.display());
    for _ in 1..TRIES {
        if path.is_symlink() {
            fs::remove_file(path).with_context(cannot)?;
            tracing::warn!("{} was a link; a file is in its place now, and the target of the link is unchanged", path.display());
        }
        foreign::is_there(path)?;
        match options.open(path) {
            Err(_) if path.is_symlink() => {}
            opened => return opened.with_context(cannot),
        }
    }
    Err(io::Error::other("links appear in its place")).with_context(cannot)
}

/// Writes a whole file, or leaves the earlier one untouched, like [`write_atomic`](super::fs::write_atomic). Replaces a link, a
/// pipe or a device.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let existing = path.symlink_metadata().ok().filter(fs::Metadata::is_file);
    replace(path, existing.as_ref(), bytes).with_context(|| format!("cannot write {}", path.display()))
}
