//! The patterns of templates, each compiled once.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex::Regex;

/// Returns the compiled pattern.
///
/// # Errors
/// If the text is not a valid regular expression.
pub(super) fn pattern(text: &'static str) -> Result<Arc<Regex>, String> {
    static KNOWN: LazyLock<Mutex<HashMap<&'static str, Arc<Regex>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pattern) = known.get(text) {
        return Ok(Arc::clone(pattern));
    }
    let pattern = Arc::new(Regex::new(text).map_err(|error| error.to_string())?);
    known.insert(text, Arc::clone(&pattern));
    Ok(pattern)
}
