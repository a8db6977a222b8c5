//! Opens untrusted files: in the folder of a model, a checkpoint or a run. Only regular files are opened, since a named pipe may
//! block forever and a device may never end. Links are followed: models in the Hugging Face cache consist of links.

use std::fs::{self, File, FileType};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};

use crate::platform::special_kind;

/// Size limit of a settings file such as config.json, in bytes.
pub const SETTINGS: u64 = 64 << 20;
/// Size limit of a tokenizer.json, in bytes; large ones have about ten million.
pub const TOKENIZER: u64 = 1 << 30;
/// Size limit of a file that holds one number or name, in bytes.
pub const WORD: u64 = 1 << 12;

/// Returns true if `path` is a regular file, false if nothing exists there.
///
/// # Errors
/// If `path` is something else, or cannot be inspected.
pub fn is_there(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(existing) if existing.is_file() => Ok(true),
        Ok(existing) => bail!("{} is {}, not a file", path.display(), kind(existing.file_type())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Opens a regular file.
///
/// # Errors
/// If the file does not exist, is not regular, or cannot be opened.
pub fn open(path: &Path) -> Result<File> {
    is_there(path)?;
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
/// If the file is missing, larger, or cannot be read.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(max + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > max {
        bail!("{} has more than {max} bytes, the limit for such a file", path.display());
    }
    Ok(bytes)
}

/// Reads a regular text file, like [`read`].
///
/// # Errors
/// The errors of [`read`], and if the text is not UTF-8.
pub fn read_text(path: &Path, max: u64) -> Result<String> {
    String::from_utf8(read(path, max)?).map_err(|_| anyhow::anyhow!("{} is not UTF-8 text", path.display()))
}

/// Returns true if a relative file name stays inside the folder that it is joined to.
pub fn is_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Returns the kind of a file in words.
fn kind(file: FileType) -> &'static str {
    match file {
        file if file.is_dir() => "a folder",
        file => special_kind(file),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        // A model in the Hugging Face cache consists of links to regular files outside of its folder.
        fs::create_dir_all(at("blobs")).unwrap();
        fs::create_dir_all(at("snapshots/1")).unwrap();
        fs::write(at("blobs/abc"), "text").unwrap();
        symlink("../../blobs/abc", at("snapshots/1/config.json")).unwrap();
        assert_eq!(read_text(&at("snapshots/1/config.json"), 4).unwrap(), "text");
        assert!(read_text(&at("blobs/abc"), 3).unwrap_err().to_string().contains("more than 3 bytes"));

        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        symlink("pipe", at("to-pipe")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("none", at("dangling")).unwrap();
        for (name, says) in [
            ("pipe", "is a named pipe, not a file"),
            ("to-pipe", "is a named pipe, not a file"),
            ("zero", "is a device, not a file"),
            ("blobs", "is a folder, not a file"),
            ("loop", "cannot read"),
        ] {
            for error in [is_there(&at(name)).map(|_| ()).unwrap_err(), read(&at(name), 9).map(|_| ()).unwrap_err()] {
                assert!(error.to_string().contains(says) && error.to_string().contains(name), "{name}: {error}");
            }
        }
        assert!(["a", "a/b", "a/b.c"].into_iter().all(is_inside));
        assert!(!["", "/a", "../a", "a/../../b", "./a", "..", "a/.."].into_iter().any(is_inside));
        for name in ["none", "dangling", "blobs/abc/below"] {
            assert!(!is_there(&at(name)).unwrap() && read(&at(name), 9).is_err());
        }
    }
}
