//! Finds the files of a published data set in a folder: from its page on the Hub, or as first published by the authors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;

/// Folders that may contain the files, including the data set's page itself; `main` is the name of a configuration.
pub(super) const WITHIN: &[&str] = &["", "data", "main"];

/// Finds the files of a split: `SPLIT.jsonl`, `SPLIT.json` or `SPLIT.parquet`, or all parts `SPLIT-00000-of-0000N.parquet`.
/// Searches the folder, then its `data`, then its `main`.
///
/// # Errors
/// If the split or a part is missing, or the split exists in several forms.
pub(super) fn split_files(folder: &Path, split: &str) -> Result<Vec<PathBuf>> {
    match find_split(folder, split)? {
        Some(files) => Ok(files),
        None => bail!(
            "--input {}: the split \"{split}\" is missing; looked for {split}.jsonl, {split}.json, {split}.parquet and \
             {split}-00000-of-0000N.parquet, here and in the folders data and main",
            folder.display()
        ),
    }
}

/// Like [`split_files`], but the split may be missing.
pub(super) fn find_split(folder: &Path, split: &str) -> Result<Option<Vec<PathBuf>>> {
    // Older uploads have a hash after the number.
    let pattern = format!(r"^{}(?:-(\d{{5}})-of-(\d{{5}})(?:-[0-9a-f]+)?\.parquet|\.parquet|\.jsonl?)$", regex::escape(split));
    let pattern = Regex::new(&pattern).expect("a name between constants");
    for folder in WITHIN.iter().map(|name| folder.join(name)).filter(|folder| folder.is_dir()) {
        let (mut whole, mut parts, mut counts) = (Vec::new(), BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(found) = pattern.captures(&name) else { continue };
            match (found.get(1), found.get(2)) {
                (Some(part), Some(count)) => {
                    counts.push(count.as_str().to_owned());
                    parts.insert(part.as_str().to_owned(), path);
                }
                _ => whole.push(path),
            }
        }
        let forms = whole.len() + usize::from(!parts.is_empty());
        ensure!(forms <= 1, "{}: the split \"{split}\" exists in several forms; keep only one", folder.display());
        if let Some(count) = counts.first() {
            let expected: usize = count.parse()?;
            let is_whole = counts.iter().all(|other| other == count) && counts.len() == expected && parts.len() == expected;
            ensure!(
                is_whole,
                "{}: the split \"{split}\" has {} of its {count} parts: all must exist, once each",
                folder.display(),
                parts.len()
            );
            return Ok(Some(parts.into_values().collect()));
        }
        if !whole.is_empty() {
            return Ok(Some(whole));
        }
    }
    Ok(None)
}

/// Finds a file by name in the folder, its `data` or its `main`.
pub(super) fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    WITHIN.iter().map(|within| folder.join(within).join(name)).find(|path| path.is_file())
}
