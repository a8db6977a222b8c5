//! Finds secrets in texts: configuration files, overrides, scripts, command lines, and URLs.

use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use super::memory::{remember, remember_setting};
use super::names::{is_harmless_name, is_harmless_value, is_place, is_secret, is_secret_value};

/// A value in one of three forms: in double quotes, in single quotes, or a word.
const VALUE: &str = r#"("[^"\n]{1,512}"|'[^'\n]{1,512}'|["']?[^\s,}\]&;"']{1,512})"#;

// These are `bytes` patterns: compiling Unicode ones would add 10 ms to every start.
/// `name: value`, `name=value`, `"name": "value"`, `environ["name"] = "value"`.
static ASSIGNMENT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r#"(?-u)([A-Za-z_][A-Za-z0-9_.-]*)["']?\]?\s*[:=]\s*{VALUE}"#)).ok());
/// `--name value`, also as words of a list: `["--name", "value"]`.
static OPTION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r#"(?-u)--([A-Za-z][A-Za-z0-9_.-]*)["']?(?:[ \t\\\n]+|\s*,\s*){VALUE}"#)).ok());
/// `Bearer value` and `Basic value`, as headers have them.
static SCHEME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)\b(Bearer|Basic|bearer|basic)[ \t]+([A-Za-z0-9._~+/=-]{5,2048})").ok());
/// A part of the query of a URL.
static QUERY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?-u)[?&]([A-Za-z0-9_.%-]+)=([^&\s"'#\\}\]]{1,2048})"#).ok());

/// Remembers the secret values in a text: a configuration file, an override, a script, a command line, a query.
pub fn remember_in(text: &str) {
    assignments(text, "");
    if text.contains("\\\"") {
        assignments(&text.replace("\\\"", "\""), "");
    }
    for (name, value) in pairs(&OPTION, text, "--") {
        remember_option(name, value.trim_matches(['"', '\'']));
    }
    for (name, value) in pairs(&QUERY, text, "=") {
        // Text without an address may have another `?`.
        let is_of_address = text.contains("://") || is_secret_value(name, value);
        if is_of_address && !is_harmless_name(name) && !is_harmless_value(value) {
            remember(value);
        }
    }
    for (_, value) in pairs(&SCHEME, text, " ") {
        if value.bytes().any(|byte| byte.is_ascii_digit()) {
            remember(value);
        }
    }
}

/// Remembers the values of secret environment variables, and the secret parts of addresses in others.
pub fn remember_environment() {
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if is_secret(name) {
            remember(value);
        } else if value.contains("://") {
            remember_in(value);
        }
    }
}

/// Remembers the secret values in the words of a command line, where a value may be the word after its option.
pub fn remember_words<W: AsRef<str>>(words: &[W]) {
    for (at, word) in words.iter().enumerate() {
        remember_in(word.as_ref());
        if let (Some(name), Some(value)) = (word.as_ref().strip_prefix("--"), words.get(at + 1)) {
            remember_option(name, value.as_ref());
        }
    }
}

/// Remembers the values of a list in a place that holds secrets, such as headers: `["X-Session: value"]`, `[["X-Session", "value"]]`.
pub fn remember_listed(place: &str, item: &str) {
    if is_place(place)
        && let Some((name, value)) = item.split_once(':')
    {
        remember_setting(&format!("{place}.{}", name.trim()), value);
    }
}

fn remember_option(name: &str, value: &str) {
    if !value.starts_with('-') && !value.starts_with('$') {
        remember_setting(name, value);
    }
}

/// Returns the names and values that a pattern finds; none if the text lacks a text that every match needs.
fn pairs<'a>(pattern: &'static LazyLock<Option<Regex>>, text: &'a str, needed: &str) -> Vec<(&'a str, &'a str)> {
    let Some(pattern) = text.contains(needed).then(|| pattern.as_ref()).flatten() else { return vec![] };
    let group = |pair: &Captures<'a>, at| complete_characters(pair.get(at).map_or(b"".as_slice(), |found| found.as_bytes()));
    pattern.captures_iter(text.as_bytes()).map(|pair| (group(&pair, 1), group(&pair, 2))).collect()
}

/// Remembers the secret values of assignments. `place` is the name of the mapping that holds the text.
fn assignments(text: &str, place: &str) {
    let (Some(pattern), mut at) = (&*ASSIGNMENT, 0) else { return };
    while let Some(assignment) = pattern.captures_at(text.as_bytes(), at) {
        let (end, bytes) = (assignment.get_match().end(), assignment[2].len());
        let (name, value) = (complete_characters(&assignment[1]), complete_characters(&assignment[2]));
        let last = name.rsplit('.').next().unwrap_or(name);
        let dotted = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        // The value may itself be an assignment: `url=https://host/?token=…`.
        at = end - bytes;
        if value.starts_with(['{', '[']) && (is_place(last) || is_secret(&dotted)) {
            let inside = bracketed(complete_characters(&text.as_bytes()[end - bytes..]));
            if is_place(last) {
                assignments(&inside[1..], last);
            } else {
                inside.split(|c: char| c.is_whitespace() || "{[:,'\"".contains(c)).for_each(remember);
            }
        } else if is_secret(&dotted) || is_secret_value(&dotted, value.trim_matches(['"', '\''])) {
            let value = value.trim_matches(['"', '\'']);
            if is_secret_value(&dotted, value) {
                remember_setting(&dotted, value);
            }
            at = end;
        }
    }
}

/// Returns the text without an incomplete last character.
fn complete_characters(bytes: &[u8]) -> &str {
    let end = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..end]).unwrap_or_default()
}

/// Returns a text up to the bracket that closes its first one, or the end of the line.
fn bracketed(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 || *c == '\n'
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}
