//! Disk use of runs.

use std::fs;
use std::path::Path;

/// Returns the size of a file, or of all files in a folder. Links are not counted.
pub fn bytes_of(path: &Path) -> u64 {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| bytes_of(&entry.path())).sum()
        }
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    }
}

/// Returns a number of bytes with its unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
