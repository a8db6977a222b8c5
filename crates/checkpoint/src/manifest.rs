//! `manifest.json`: the files that a checkpoint must contain, so that a truncated or altered one is refused instead of resumed.
//!
//! Checksums are CRC-32 as in zlib (Python's `zlib.crc32` and `crc32 FILE` give the same value), in eight hexadecimal digits.
//! They detect damage, not malice.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::folder::step_of;
use burnish_util::crc;
use burnish_util::foreign::{self, is_inside};
use burnish_util::fs::files_under;

const FILE_NAME: &str = "manifest.json";

/// Contents of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of burnish that saved the checkpoint.
    pub burnish: String,
    /// Training step after which the checkpoint was saved.
    pub step: u64,
    /// Counter of the saves in a directory across runs. It gives the order of saving, even after checkpoints were copied or a run
    /// was resumed from an earlier step.
    pub sequence: u64,
    /// Every other file of the checkpoint, sorted by path.
    pub files: Vec<FileEntry>,
}

/// One file of a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path relative to the checkpoint, with `/` between components.
    pub path: String,
    /// Size of the file.
    pub bytes: u64,
    /// CRC-32 of the contents, in hexadecimal.
    pub crc32: String,
}

impl Manifest {
    /// Lists the files now under `dir`. `alive` is called from time to time.
    pub(super) fn describe(dir: &Path, step: u64, sequence: u64, alive: &dyn Fn()) -> Result<Self> {
        let mut files = Vec::new();
        for path in files_under(dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let name = path.iter().map(|part| part.to_str()).collect::<Option<Vec<_>>>();
            let name = name.with_context(|| format!("the file name {} is not UTF-8", path.display()))?.join("/");
            let path = dir.join(&path);
            let (bytes, crc32) = checksum(&path, alive).with_context(|| format!("cannot read back {}", path.display()))?;
            files.push(FileEntry { path: name, bytes, crc32 });
        }
        Ok(Self { burnish: env!("CARGO_PKG_VERSION").into(), step, sequence, files })
    }

    /// Writes the manifest into a staged checkpoint.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let path = dir.join(FILE_NAME);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads the manifest of `dir`. If `dir` has the name of a checkpoint, the step must match the manifest's.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(FILE_NAME);
        let text = foreign::read_text(&path, foreign::SETTINGS)
            .with_context(|| format!("{} is not a complete checkpoint", dir.display()))?;
        let manifest: Self = serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
        if let Some(outside) = manifest.files.iter().find(|file| !is_inside(&file.path)) {
            bail!("{} is damaged: it names {:?}, which is not a file of this folder", path.display(), outside.path);
        }
        if let Ok(step) = step_of(dir)
            && step != manifest.step
        {
            bail!("{} was saved as the checkpoint of step {}: rename it back", dir.display(), manifest.step);
        }
        Ok(manifest)
    }

    /// Returns the counter of the next save in the directory. A foreign manifest may hold the largest counter; then the step
    /// gives the order.
    pub(super) fn next_sequence(&self) -> u64 {
        self.sequence.saturating_add(1)
    }

    /// Returns the size of all files together, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    /// Makes the quick check: every file exists and has its full size.
    pub(super) fn check_sizes(&self, dir: &Path) -> Result<()> {
        for file in &self.files {
            let path = dir.join(&file.path);
            check_own(dir, &file.path)?;
            let bytes = fs::metadata(&path).with_context(|| format!("{} is missing", path.display()))?.len();
            if bytes != file.bytes {
                bail!("{} is damaged: it has {bytes} bytes, not {}", path.display(), file.bytes);
            }
        }
        Ok(())
    }

    /// Reads every file and compares checksums.
    pub(super) fn check_contents(&self, dir: &Path) -> Result<()> {
        for file in &self.files {
            let path = dir.join(&file.path);
            check_own(dir, &file.path)?;
            let (_, crc32) = checksum(&path, &|| ()).with_context(|| format!("cannot read {}", path.display()))?;
            if crc32 != file.crc32 {
                bail!("{} is damaged: its CRC-32 is {crc32}, not {}", path.display(), file.crc32);
            }
        }
        Ok(())
    }
}

/// Refuses anything but a plain file at a path below `dir` without links: a checkpoint must hold its files itself.
fn check_own(dir: &Path, name: &str) -> Result<()> {
    let mut path = dir.to_path_buf();
    for part in Path::new(name) {
        path.push(part);
        if path.is_symlink() {
            bail!("{} is a link, but a checkpoint must hold its files itself: copy the file here", path.display());
        }
    }
    if !foreign::is_there(&path)? {
        bail!("{} is missing", path.display());
    }
    Ok(())
}

/// Returns the size and CRC-32 of a file.
fn checksum(path: &Path, alive: &dyn Fn()) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut crc) = (0, 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, format!("{crc:08x}")));
        }
        bytes += read as u64;
        alive();
        crc = crc::IEEE.extend(crc, &buffer[..read]);
    }
}
