//! Decides what is secret, and keeps secrets out of output and saved files.
//!
//! Settings and environment variables are secret by name. Their values are remembered when they are read, and every output of the
//! process then shows [`HIDDEN`] instead. Names and passwords in URLs (`https://user:password@host`) are hidden by their form.

use std::borrow::Cow;
use std::sync::{LazyLock, PoisonError, RwLock};

use regex::{Captures, Regex, bytes};

/// The text shown instead of a secret.
pub const HIDDEN: &str = "***";

/// Shortest value to hide, in bytes: shorter values are parts of other words.
const SHORTEST: usize = 5;

/// Words that make a name secret at any position.
const ALWAYS: &[&str] =
    &["password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials", "apikey", "authorization", "bearer"];
/// Words that make a name secret before a final `key`.
const KEYS: &[&str] = &["api", "access", "private", "secret", "auth", "account", "encryption", "signing", "ssh", "master"];
/// Words that make a final `token` a token of text, which is not secret.
const TOKENS: &[&str] = &[
    "pad", "eos", "bos", "unk", "sep", "cls", "mask", "stop", "end", "start", "begin", "image", "video", "audio", "special",
    "per", "first", "last", "next", "previous", "new", "think", "tool", "max", "min", "response", "prompt",
];
/// Final words of names that only lead to a secret.
const LEADS: &[&str] = &["env", "name", "file", "path", "url", "id", "length", "len", "count"];

static KNOWN: RwLock<Vec<String>> = RwLock::new(Vec::new());

static ADDRESS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@\x22'<>]+@").ok());
/// A `bytes` regex: compiling the Unicode one would add 10 ms to every start.
static ASSIGNMENT: LazyLock<Option<bytes::Regex>> = LazyLock::new(|| {
    bytes::Regex::new(
        r#"(?-u)([A-Za-z_][A-Za-z0-9_.-]*)["']?\s*[:=]\s*("[^"\n]{1,512}"|'[^'\n]{1,512}'|["']?[^\s,}\]&;"']{1,512})"#,
    )
    .ok()
});

/// Returns true if settings and variables with this name are secret: `wandb.api_key`, `HF_TOKEN`, `password`.
pub fn is_secret(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let words: Vec<&str> = last.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [.., last] if LEADS.contains(&last) => false,
        _ if words.iter().any(|word| ALWAYS.contains(word)) => true,
        [.., before, "key"] => KEYS.contains(&before),
        [.., before, "token"] => !TOKENS.contains(&before),
        ["token"] => true,
        _ => false,
    }
}

/// Returns true if a number is secret under this name: a password may be a number, but a numeric `…token` is a limit.
pub fn may_be_number(name: &str) -> bool {
    !name.to_ascii_lowercase().ends_with("token")
}

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

/// Remembers the secret values in a text with assignments: a configuration file, an override, a query.
pub fn remember_in(text: &str) {
    let (Some(pattern), mut at) = (&*ASSIGNMENT, 0) else { return };
    while let Some(assignment) = pattern.captures_at(text.as_bytes(), at) {
        let (end, bytes) = (assignment.get_match().end(), assignment[2].len());
        let (name, value) = (whole_characters(&assignment[1]), whole_characters(&assignment[2]));
        if is_secret(name) {
            if value.starts_with(['{', '[']) {
                let rest = whole_characters(&text.as_bytes()[end - bytes..]);
                let inside = &rest[..rest.find(['}', ']', '\n']).unwrap_or(rest.len())];
                inside.split(|c: char| c.is_whitespace() || "{[:,'\"".contains(c)).for_each(remember);
            } else if may_be_number(name) || value.parse::<f64>().is_err() {
                remember(value.trim_matches(['"', '\'']));
            }
            at = end;
        } else {
            // The value may itself be an assignment: `url=https://host/?token=…`.
            at = end - bytes;
        }
    }
}

/// Returns the text without an incomplete last character.
fn whole_characters(bytes: &[u8]) -> &str {
    let whole = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..whole]).unwrap_or_default()
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
    value == HIDDEN || value.contains(&format!("://{HIDDEN}@"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_what_is_secret() {
        for name in [
            "api_key",
            "trainer.wandb_api_key",
            "WANDB_API_KEY",
            "HF_TOKEN",
            "token",
            "a.access-token",
            "AWS_SECRET_ACCESS_KEY",
            "client_secret",
            "db.password",
            "MLFLOW_TRACKING_PASSWORD",
            "Authorization",
            "private_key",
            "OPENAI_APIKEY",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "data.prompt_key",
            "reward_fn_key",
            "eos_token",
            "pad_token",
            "stop_token_ids",
            "max_tokens",
            "tokenizer",
            "reward.remote_token_env",
            "token_env",
            "log_prob_max_token_len_per_gpu",
            "key",
            "PWD",
            "secret_name",
            "monkey",
            "loss_agg_mode",
            "token-mean",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn remembered_values_and_users_in_addresses_are_hidden() {
        remember_in("reward.kwargs={api_key: sk-test-1, n: 5} token='with spaces' password=12345678 x.secret=${oc.env:A_SECRET}");
        remember_in("api_key='unclosed-test-1");
        remember_in("my_secret={a: nested-test-1, b: x: nested-test-2}");
        remember_in("answer_token: 4096000, user.token=tok-test-1");
        remember_in("url=https://host/x?access_token=query-test-1&y=1");
        // The length limit of a value falls inside a character.
        remember_in(&format!("api_key={}é and more", "long-test-".repeat(51) + "x"));
        for (text, shown) in [
            ("error: sk-test-1 is wrong", "error: *** is wrong"),
            ("with spaces 12345678", "*** ***"),
            ("api_key='unclosed-test-1", "api_key='***"),
            ("nested-test-1, nested-test-2", "***, ***"),
            ("4096000 tok-test-1", "4096000 ***"),
            ("?access_token=query-test-1&y=1", "?access_token=***&y=1"),
            ("at https://me:pass@host:80/p, ftp://me@host", "at https://***@host:80/p, ftp://***@host"),
            ("a@b.c https://host/@me ${oc.env:A_SECRET}", "a@b.c https://host/@me ${oc.env:A_SECRET}"),
        ] {
            assert_eq!(hide(text), shown);
        }
        assert!(is_hidden("***") && is_hidden(&hide("https://a:b@c")) && !is_hidden("a ***"));
    }
}
