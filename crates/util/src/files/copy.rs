//! Copies of files and of folders of files.

use std::fs;
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
        return fs::copy(path, &to).map(drop).with_context(cannot);
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
