//! Calls of MLflow's REST interface.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use ureq::http::{HeaderValue, Response, Uri};
use ureq::{Agent, Body, Error};

use super::super::outbox::DeliveryError;

/// Time limit of one call, from the connection to the last byte of the reply.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BYTES: u64 = 16 << 20;
/// Number of characters of a response body that an error quotes.
const QUOTED: usize = 300;

/// An MLflow server: its address and the credentials for it.
pub(super) struct MlflowServer {
    agent: Agent,
    /// Address without a trailing slash.
    base: String,
    authorization: Option<HeaderValue>,
}

/// A failed call.
#[derive(Debug)]
pub(super) struct MlflowError {
    /// HTTP status; `None` without a reply.
    pub status: Option<u16>,
    /// MLflow's name of the error, such as `RESOURCE_DOES_NOT_EXIST`.
    pub code: String,
    message: String,
}

impl MlflowError {
    /// Creates an error for a successful reply that lacks a required value.
    pub(crate) fn malformed_reply(message: impl Into<String>) -> Self {
        Self { status: Some(200), code: String::new(), message: message.into() }
    }

    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self.status, None | Some(408 | 429 | 500..))
    }

    /// Converts the error to a [`DeliveryError`] for the `rows` that were sent.
    pub(crate) fn into_delivery_error(self, rows: usize) -> DeliveryError {
        if self.is_temporary() {
            DeliveryError::Temporary(anyhow!("{self}"))
        } else {
            DeliveryError::Permanent(rows, anyhow!("{self}"))
        }
    }
}

impl fmt::Display for MlflowError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Credentials for the server, from the variables that MLflow's client reads.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    pub(crate) username: Option<String>,
    pub password: Option<String>,
    pub token: Option<String>,
}

impl Credentials {
    pub(super) fn from_environment() -> Self {
        let set = |name: &str| std::env::var(format!("MLFLOW_TRACKING_{name}")).ok().filter(|value| !value.is_empty());
        let [username, password, token] = ["USERNAME", "PASSWORD", "TOKEN"].map(set);
        Self { username, password, token }
    }

    /// Returns the Authorization header. A user name with a password takes precedence over a token, as in MLflow's client.
    fn header(&self) -> Result<Option<HeaderValue>> {
        let text = match (&self.username, &self.password, &self.token) {
            (Some(username), Some(password), _) => format!("Basic {}", BASE64_STANDARD.encode(format!("{username}:{password}"))),
            (_, _, Some(token)) => format!("Bearer {token}"),
            _ => return Ok(None),
        };
        // The error of `http` does not contain the header's text, and neither does this one.
        let header = HeaderValue::from_str(&text).ok();
        let mut header = header.context("MLFLOW_TRACKING_TOKEN has characters that an HTTP header cannot contain")?;
        header.set_sensitive(true);
        Ok(Some(header))
    }
}

impl MlflowServer {
    /// Prepares calls to the server at `address`; no request is sent yet.
    ///
    /// # Errors
    /// If `address` is not an http or https address with a host, or if a header cannot carry the token.
    pub(super) fn new(address: &str, credentials: &Credentials) -> Result<Self> {
        let base = address.trim().trim_end_matches('/');
        let uri: Option<Uri> = base.parse().ok().filter(|uri: &Uri| uri.scheme().is_some());
        let host = uri.as_ref().and_then(Uri::host).filter(|host| !host.is_empty());
        let host =
            host.with_context(|| format!("MLFLOW_TRACKING_URI={}: this is not the address of a server", without_user(base)))?;
        ensure!(
            !base.contains(['?', '#']),
            "MLFLOW_TRACKING_URI={}: the address of a server must not contain ? or #",
            without_user(base)
        );
        let authorization = credentials.header()?;
        let local = is_local(host);
        if authorization.is_some() && !local && base.starts_with("http:") {
            tracing::warn!("mlflow: the token or password is sent unencrypted, since the address is not https");
        }
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("burnish/", env!("CARGO_PKG_VERSION")));
        let config = if local { config.proxy(None) } else { config };
        Ok(Self { agent: config.build().into(), base: base.to_owned(), authorization })
    }

    /// Returns the address without user and password.
    pub(super) fn address(&self) -> String {
        without_user(&self.base)
    }

    pub(super) fn get(&self, call: &str, query: &[(&str, &str)]) -> Result<Value, MlflowError> {
        let mut request = self.agent.get(format!("{}/api/2.0/mlflow/{call}", self.base));
        for (name, value) in query {
            request = request.query(name, value);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.read(call, request.call())
    }

    pub(super) fn post(&self, call: &str, body: &Value) -> Result<Value, MlflowError> {
        let mut request = self.agent.post(format!("{}/api/2.0/mlflow/{call}", self.base)).content_type("application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.read(call, request.send(body.to_string().as_bytes()))
    }

    /// Stores a file below the server's artifact root.
    pub(crate) fn put_artifact(&self, path: &str, content: &[u8]) -> Result<(), MlflowError> {
        let mut request = self.agent.put(format!("{}/api/2.0/mlflow-artifacts/artifacts/{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let stored = self.read("mlflow-artifacts", request.content_type("application/json").send(content));
        // The reply to a successful upload has no content.
        stored
            .map(|_| ())
            .or_else(|failure| if failure.status.is_some_and(|status| status < 300) { Ok(()) } else { Err(failure) })
    }

    fn read(&self, call: &str, reply: Result<Response<Body>, Error>) -> Result<Value, MlflowError> {
        let read = reply.and_then(|mut response| {
            let body = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec()?;
            Ok((response.status().as_u16(), body))
        });
        let address = self.address();
        let nobody =
            |error: Error| MlflowError { status: None, code: String::new(), message: format!("{address}: {}", describe(&error)) };
        let (status, body) = read.map_err(nobody)?;
        let value: Option<Value> = serde_json::from_slice(&body).ok();
        if let (200..=299, Some(value)) = (status, &value) {
            return Ok(value.clone());
        }
        let text = |name| value.as_ref().and_then(|value| value.get(name)).and_then(Value::as_str);
        let reason = text("message").map_or_else(|| quote(&body), |message| quote(message.as_bytes()));
        let advice = match status {
            401 | 403 => " (set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD)",
            300..=399 => " (redirects are not followed)",
            _ => "",
        };
        let message = format!("{address} replied to {call} with status {status}{advice}: {reason}");
        Err(MlflowError { status: Some(status), code: text("error_code").unwrap_or_default().to_owned(), message })
    }
}

fn describe(error: &Error) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        Error::ConnectionFailed => "no connection".to_owned(),
        Error::Timeout(_) => format!("no reply within {TIMEOUT:?}"),
        error => error.to_string(),
    }
}

/// Returns the beginning of a response body, on one line.
fn quote(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(QUOTED) {
        _ if text.is_empty() => "no body".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Removes user and password: `https://user:password@host` → `https://host`.
fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{}", &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_shown_without_passwords() {
        let server = |address: &str| MlflowServer::new(address, &Credentials::default());
        assert_eq!(server("https://me:secret@host:5000/path/").unwrap().address(), "https://host:5000/path");
        for address in ["http://", "http://a b", "http://host?x=1"] {
            let error = server(address).err().unwrap().to_string();
            assert!(error.contains("MLFLOW_TRACKING_URI="), "{error}");
        }
    }
}
