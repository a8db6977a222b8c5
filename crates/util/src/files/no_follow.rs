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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::fs::AtomicDir;
    use crate::jsonl::StepLog;
    use crate::lock::lock;

    /// Each way to write a file or a folder of a run, with a link at its place: to a file, to a folder, to nothing, to itself.
    #[test]
    fn no_link_leads_out_of_a_folder() {
        type Writer = fn(&Path) -> Result<()>;
        let ways: [(&str, Writer); 6] = [
            ("appended", |path| Ok(open(path, OpenOptions::new().append(true).create(true))?.write_all(b"new")?)),
            ("emptied", |path| open(path, OpenOptions::new().write(true).create(true).truncate(true)).map(drop)),
            ("replaced", |path| write(path, b"new")),
            ("a log of steps", |path| StepLog::open_own(path, Some(3))?.append("{\"step\":4}")),
            (".lock", |path| lock(path.parent().unwrap()).map(drop)),
            ("a folder", |path| {
                let staged = AtomicDir::stage_own(path)?;
                fs::write(staged.path().join("new"), "")?;
                staged.commit()
            }),
        ];
        for (name, write) in ways {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            for (i, target) in ["precious", "folder", "nothing", "self"].into_iter().enumerate() {
                let run = at(&format!("run{i}"));
                fs::create_dir_all(&run).unwrap();
                fs::create_dir_all(at("folder")).unwrap();
                fs::write(at("precious"), "precious").unwrap();
                fs::write(at("folder/inside"), "inside").unwrap();
                let path = run.join(name);
                symlink(if target == "self" { path.clone() } else { at(target) }, &path).unwrap();
                write(&path).unwrap_or_else(|error| panic!("{name}, {target}: {error:#}"));
                assert!(!path.is_symlink() && path.exists(), "{name}, {target}");
                let kept = ["precious", "folder/inside"].map(|file| fs::read_to_string(at(file)).unwrap());
                assert_eq!((kept, at("nothing").exists()), (["precious".into(), "inside".into()], false), "{name}, {target}");
                assert_eq!(fs::read_dir(at("folder")).unwrap().count(), 1, "{name}, {target}");
                assert_eq!(fs::read_dir(&run).unwrap().count(), 1, "{name}, {target}: something was left");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        assert!(open(dir.path(), OpenOptions::new().append(true)).unwrap_err().to_string().contains("is a folder"));
    }
}
