//! Copies of files and of folders of files. A copy has the mode of a new file, which follows the umask, and not that of its source:
//! a run under `umask 077` is then private as a whole.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use super::foreign;

/// Copies a file, or a folder with the files directly in it, into `folder` under the same name. Skips folders inside a folder.
pub fn copy_into(path: &Path, folder: &Path) -> Result<()> {
    let name = path.file_name().with_context(|| format!("{} is not a file", path.display()))?;
    let to = folder.join(name);
    let cannot = || format!("cannot copy {} to {}", path.display(), to.display());
    if !path.is_dir() {
        foreign::is_there(path)?;
        return copy_file(path, &to).with_context(cannot);
    }
    fs::create_dir_all(&to).with_context(cannot)?;
    for entry in fs::read_dir(path).with_context(cannot)? {
        let inner = entry.with_context(cannot)?.path();
        if inner.is_file() {
            copy_into(&inner, &to)?;
        }
    }
    Ok(())
}

/// Copies the contents of a file.
///
/// # Errors
/// If a file cannot be read or written.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut File::create(to)?).map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_copy_has_the_mode_of_a_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode();
        fs::write(at("source"), "text").unwrap();
        let of_new = mode("source");
        fs::create_dir(at("folder")).unwrap();
        for bits in [0o600, 0o644, 0o755, 0o777] {
            fs::set_permissions(at("source"), fs::Permissions::from_mode(bits)).unwrap();
            copy_into(&at("source"), &at("folder")).unwrap();
            assert_eq!((mode("folder/source"), fs::read(at("folder/source")).unwrap()), (of_new, b"text".to_vec()), "{bits:o}");
            fs::remove_file(at("folder/source")).unwrap();
        }
    }
}
