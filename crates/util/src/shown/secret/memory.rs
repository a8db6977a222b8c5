//! The secret values that were read so far, and texts without them.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::{Captures, Regex};

use super::names::{is_secret, is_secret_value};

/// The text shown instead of a secret.
pub const HIDDEN: &str = "***";

/// Shortest value to hide, in bytes: shorter values are parts of other words.
const SHORTEST: usize = 5;

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@\x22'<>]+@").ok());

/// Remembers a secret value; from now on, no output shows it.
pub fn remember(value: &str) {
    let value = value.trim();
    let is_word = value.contains("${") || ["false", HIDDEN].contains(&value);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if value.len() >= SHORTEST && !is_word && known.iter().all(|one| one != value) {
        known.push(value.to_owned());
        // A secret that is part of a longer one is replaced after it.
        known.sort_by_key(|one| std::cmp::Reverse(one.len()));
    }
}

/// Remembers the value of a setting, a variable or a header, if it is secret by its dotted name.
pub fn remember_setting(name: &str, value: &str) {
    if is_secret_value(name, value) {
        let value = value.trim();
        remember(value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("Basic ")).unwrap_or(value));
    }
}

/// Remembers the values of secret environment variables.
pub fn remember_environment() {
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && is_secret(name)
        {
            remember(value);
        }
    }
}

/// Returns a text without remembered secrets, and without names and passwords in URLs.
pub fn hide(text: &str) -> Cow<'_, str> {
    let mut shown = match ADDRESS.as_ref().filter(|_| text.contains("://")) {
        Some(address) => address.replace_all(text, |found: &Captures| format!("{}{HIDDEN}@", &found[1])),
        None => Cow::Borrowed(text),
    };
    for secret in KNOWN.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if shown.contains(secret.as_str()) {
            shown = shown.replace(secret.as_str(), HIDDEN).into();
        }
    }
    shown
}

/// Returns true if a saved value was hidden, so it cannot be used.
pub fn is_hidden(value: &str) -> bool {
    value == HIDDEN || value.contains(&format!("://{HIDDEN}@")) || value.contains(&format!("={HIDDEN}"))
}
