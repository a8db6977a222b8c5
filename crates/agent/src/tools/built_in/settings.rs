//! The settings of a built-in tool in a tool configuration.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use ureq::http::Uri;

use burnish_util::suggest::did_you_mean;

/// Fails if `config` has a key that the tool does not read. Every tool accepts `type`.
pub(in crate::tools) fn only_known(known: &[&str], config: &Value) -> Result<()> {
    let fields = match config {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => bail!("`config` must be a mapping, not {other}"),
    };
    for key in fields.keys().map(String::as_str).filter(|key| *key != "type") {
        if !known.contains(&key) {
            let hint = did_you_mean(key, known.iter().copied());
            bail!("the tool has no setting `{key}`.{hint} It reads: type {}", known.join(" "));
        }
    }
    Ok(())
}

/// Returns an integer of at least 1; the default if the key is missing or null.
pub(super) fn count(config: &Value, key: &str, default: u64) -> Result<u64> {
    match &config[key] {
        Value::Null => Ok(default),
        value => value
            .as_u64()
            .filter(|count| *count > 0)
            .with_context(|| format!("`{key}` must be a whole number of at least 1, not {value}")),
    }
}

/// Returns a positive time in seconds; the default if the key is missing or null.
pub(in crate::tools) fn seconds(config: &Value, key: &str, default: u64) -> Result<Duration> {
    let time = match &config[key] {
        Value::Null => Some(Duration::from_secs(default)),
        value => value.as_f64().filter(|seconds| *seconds > 0.0).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    };
    time.with_context(|| format!("`{key}` must be a number of seconds above 0, not {}", config[key]))
}

/// Returns the address of a service.
pub(super) fn address(config: &Value, key: &str, example: impl Display) -> Result<Uri> {
    let text = config[key].as_str().unwrap_or_default();
    ensure!(!text.is_empty(), "`{key}` is not set: the address of the service, such as {example}");
    let parsed: Uri = text.parse().with_context(|| format!("`{key}`: {text} is not a valid address"))?;
    let known = matches!(parsed.scheme_str(), Some("http" | "https")) && parsed.host().is_some();
    ensure!(known, "`{key}`: {text} must begin with http:// or https://, such as {example}");
    Ok(parsed)
}
