//! The program's folder in the user's cache.

use std::env;
use std::path::PathBuf;

/// Returns `$XDG_CACHE_HOME/burnish`, or else `~/.cache/burnish`; `None` if neither variable holds an absolute path.
pub fn cache_folder() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache"))).map(|cache| cache.join("burnish"))
}
