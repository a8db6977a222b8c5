//! The secret values that were read so far, and texts without them.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::{Captures, Regex};

use super::names::is_secret_value;

/// The text shown instead of a secret.
pub const HIDDEN: &str = "***";

/// Shortest value to hide, in bytes: shorter values are parts of other words.
const SHORTEST: usize = 5;

/// Shortest line to hide of a value with several lines, in bytes.
const LINE: usize = 16;

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@\x22'<>]+@").ok());

/// Remembers a secret value; from now on, no output shows it.
pub fn remember(value: &str) {
    let value = value.trim();
    let is_word = value.contains("${") || ["false", "Bearer", "Basic", HIDDEN].contains(&value);
    if value.len() < SHORTEST || is_word {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    for form in forms(value) {
        if !known.contains(&form) {
            known.push(form);
        }
    }
    // A secret that is part of a longer one is replaced after it.
    known.sort_by_key(|one| std::cmp::Reverse(one.len()));
}

/// Returns a value, and its forms in JSON, Python, HTML and addresses.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let json = serde_json::Value::from(value).to_string();
    forms.push(json[1..json.len() - 1].to_owned());
    // Python escapes the quotes that it wrote around the text.
    let python = value.replace('\\', r"\\").replace('\n', r"\n").replace('\t', r"\t").replace('\r', r"\r");
    forms.push(python.replace('\'', r"\'"));
    forms.push(python);
    forms.push(value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"));
    let percent = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    forms.push(value.bytes().map(percent).collect());
    // The console escapes control characters; a file may hold the lines of a key one by one.
    if value.contains('\n') {
        forms.extend(
            value.lines().map(str::trim).filter(|line| line.len() >= LINE && !line.starts_with("-----")).map(str::to_owned),
        );
    }
    forms
}

/// Remembers the value of a setting, a variable or a header, if it is secret by its dotted name.
pub fn remember_setting(name: &str, value: &str) {
    if is_secret_value(name, value) {
        let value = value.trim();
        remember(value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("Basic ")).unwrap_or(value));
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
