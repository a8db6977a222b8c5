//! Requests that change a repository on the Hub, and the errors of their replies.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use ureq::config::RedirectAuthHeaders;
use ureq::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use ureq::http::{HeaderMap, HeaderValue, Uri};
use ureq::typestate::{WithBody, WithoutBody};
use ureq::{Agent, RequestBuilder, SendBody};

use super::environment::{Environment, HUB};
use super::error::{HubError, origin};
use super::paced::{MIN_BYTES, Paced, WINDOW};
use burnish_util::secret::hide;

/// The longest wait for a reply: a commit of many files and the joining of a large file's parts take long.
const REPLY_TIMEOUT: Duration = Duration::from_secs(180);
/// The byte limit of a reply.
const MAX_BYTES: u64 = 64 << 20;
/// The number of characters of a reply that an error quotes.
const QUOTED: usize = 300;

/// A client for requests that change a repository, with a token that may write.
pub(super) struct HubWriter {
    pub environment: Environment,
    agent: Agent,
    authorization: HeaderValue,
    /// Time over which the rate of a transfer is measured.
    window: Duration,
}

/// A reply of any status except those worth another attempt.
pub(super) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl HubWriter {
    /// Prepares requests without sending one.
    ///
    /// # Errors
    /// If `HF_HUB_OFFLINE` is set, or there is no token.
    pub(crate) fn new(environment: Environment) -> Result<Self, HubError> {
        if environment.offline {
            return Err(HubError::permanent("HF_HUB_OFFLINE is set, so that nothing can be pushed", "unset it"));
        }
        let Some(authorization) = environment.authorization()? else {
            let tokens = environment.url("/settings/tokens");
            return Err(HubError::permanent(
                "a push needs a token, but HF_TOKEN is unset",
                format!("create a token with write access at {tokens} and set HF_TOKEN to it (or log in with `hf auth login`)"),
            ));
        };
        if environment.is_unencrypted() {
            tracing::warn!("HF_ENDPOINT is not an https:// address: others on the network can read the token");
        }
        Ok(Self { agent: environment.agent(), authorization, environment, window: WINDOW })
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// If there is no reply, or its status is worth another attempt (408, 429, 5xx).
    pub(crate) fn get(&self, address: &str) -> Result<Reply, HubError> {
        let uri = parse_address(address)?;
        let request = self.with_token(self.agent.get(&uri), &uri);
        let request = request.config().max_redirects(5).redirect_auth_headers(RedirectAuthHeaders::SameHost);
        let request: RequestBuilder<WithoutBody> =
            request.timeout_recv_response(Some(REPLY_TIMEOUT)).timeout_per_read(Some(REPLY_TIMEOUT)).build();
        self.receive(&uri, request.call())
    }

    /// Sends a POST request with additional headers.
    ///
    /// # Errors
    /// The errors of [`Self::get`].
    pub(crate) fn post(&self, address: &str, kind: &str, body: &[u8], more: &HeaderMap) -> Result<Reply, HubError> {
        let uri = parse_address(address)?;
        let request =
            self.with_token(self.agent.post(&uri), &uri).header(CONTENT_TYPE, kind).header("accept", accepted_type(kind));
        let request = more.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.config().timeout_send_body(Some(self.longest(body.len() as u64)));
        let request: RequestBuilder<WithBody> =
            request.timeout_recv_response(Some(REPLY_TIMEOUT)).timeout_per_read(Some(REPLY_TIMEOUT)).build();
        self.receive(&uri, request.send(body))
    }

    /// Sends a PUT request with `length` bytes of a file, starting at byte `from`.
    ///
    /// # Errors
    /// The errors of [`Self::get`], or if the file cannot be read.
    pub(crate) fn put(&self, address: &str, more: &HeaderMap, file: &Path, from: u64, length: u64) -> Result<Reply, HubError> {
        let uri = parse_address(address)?;
        let mut source = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        source.seek(SeekFrom::Start(from)).with_context(|| format!("cannot read {}", file.display()))?;
        let request = self.with_token(self.agent.put(&uri), &uri).header(CONTENT_LENGTH, length);
        let request = more.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.config().timeout_send_body(Some(self.longest(length)));
        let request: RequestBuilder<WithBody> =
            request.timeout_recv_response(Some(REPLY_TIMEOUT)).timeout_per_read(Some(REPLY_TIMEOUT)).build();
        self.receive(&uri, request.send(SendBody::from_owned_reader(source.take(length))))
    }

    /// Returns the longest time for sending this number of bytes. The timeout of a write alone does not end a server that
    /// takes one byte every few seconds.
    fn longest(&self, bytes: u64) -> Duration {
        self.window.mul_f64(3.0 + bytes as f64 / MIN_BYTES as f64)
    }

    /// Replaces the Hub's own address by that of the configured mirror.
    pub(crate) fn through_mirror(&self, address: &str) -> String {
        let endpoint = self.environment.url("");
        match address.strip_prefix(HUB) {
            Some(rest) if endpoint != HUB => format!("{endpoint}{rest}"),
            _ => address.to_owned(),
        }
    }

    /// Adds the token to a request, if it goes to the Hub itself and not to a store.
    fn with_token<B>(&self, request: RequestBuilder<B>, uri: &Uri) -> RequestBuilder<B> {
        match self.environment.is_endpoint(uri) {
            true => request.header(AUTHORIZATION, &self.authorization),
            false => request,
        }
    }

    fn receive(&self, uri: &Uri, reply: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Reply, HubError> {
        let broken = |error: ureq::Error| HubError::no_reply(uri, &error, REPLY_TIMEOUT);
        let reply = reply.map_err(broken)?;
        let (status, headers, mut body) = (reply.status().as_u16(), reply.headers().clone(), Vec::new());
        let mut rest = Paced::over(reply.into_body().into_with_config().limit(MAX_BYTES).reader(), self.window);
        rest.read_to_end(&mut body).map_err(|error: io::Error| broken(error.into()))?;
        let reply = Reply { status, headers, body };
        match reply.status {
            408 | 429 | 500.. => {
                Err(HubError::transient(format!("{} replies with status {}{}", origin(uri), reply.status, reply.message())))
            }
            _ => Ok(reply),
        }
    }

    /// Returns the JSON of a successful reply about a repository.
    ///
    /// # Errors
    /// If the status is not a success, or the body is not JSON.
    pub(crate) fn json(&self, repo: &str, reply: &Reply) -> Result<Value, HubError> {
        if !(200..300).contains(&reply.status) {
            return Err(self.refusal(repo, reply));
        }
        let wrong = || HubError::permanent(format!("{} does not reply as the Hub does", self.environment.url("")), "");
        serde_json::from_slice(&reply.body).map_err(|_| wrong())
    }

    /// Returns the error of a refused request.
    pub(crate) fn refusal(&self, repo: &str, reply: &Reply) -> HubError {
        let (endpoint, message) = (self.environment.url(""), reply.message());
        let tokens = format!("{endpoint}/settings/tokens");
        match reply.status {
            401 => HubError::permanent(
                format!("{endpoint} does not accept the token{message}"),
                format!("create a token with write access at {tokens} and set HF_TOKEN to it"),
            ),
            403 => HubError::permanent(
                format!("the token has no write access to `{repo}` at {endpoint}{message}"),
                format!("use a token with write access, created at {tokens}, or push under another name"),
            ),
            404 => HubError::permanent(
                format!("{endpoint} has no repository `{repo}`, or the token has no access to it{message}"),
                "check the name, and the branch of --revision",
            ),
            409 | 412 => HubError::permanent(
                format!("another client is changing `{repo}` at {endpoint}{message}"),
                "push again: contents that arrived are not sent twice",
            ),
            413 => HubError::permanent(
                format!("the request is too large for {endpoint}{message}"),
                "export smaller files of weights with --max-shard-size",
            ),
            300..=399 => {
                let to = reply.headers.get("location").and_then(|to| to.to_str().ok()).unwrap_or("another address");
                HubError::permanent(
                    format!("{endpoint} redirects to {to}"),
                    format!("perhaps `{repo}` was renamed: push under its new name"),
                )
            }
            status => HubError::permanent(format!("{endpoint} replies with status {status}{message}"), ""),
        }
    }
}

impl Reply {
    /// Returns the server's own message as ": MESSAGE" on one line, or an empty text. Hides secrets in it.
    fn message(&self) -> String {
        let header = self.headers.get("x-error-message").and_then(|message| message.to_str().ok()).map(str::to_owned);
        let error = || {
            let body: Value = serde_json::from_slice(&self.body).ok()?;
            body.get("error").or_else(|| body.get("message")).and_then(Value::as_str).map(str::to_owned)
        };
        let words = header.or_else(error).unwrap_or_default();
        let words = hide(&words).split_whitespace().collect::<Vec<_>>().join(" ");
        let cut = words.char_indices().nth(QUOTED).map_or(words.len(), |(end, _)| end);
        if words.is_empty() { String::new() } else { format!(": {}", &words[..cut]) }
    }
}

fn accepted_type(kind: &str) -> &str {
    if kind.contains("git-lfs") { kind } else { "application/json" }
}

fn parse_address(address: &str) -> Result<Uri, HubError> {
    // The address of a store is signed, so that messages do not show it.
    address.parse().map_err(|_| HubError::permanent("the server replies with an invalid address", ""))
}

/// Escapes a part of an address.
pub(super) fn quoted(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    part.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// Starts a server that treats its only connection in this way, and returns a writer for the server.
    fn writer_for(window: Duration, serve: impl FnOnce(TcpStream) + Send + 'static) -> HubWriter {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || serve(listener.accept().unwrap().0));
        let find = |name: &str| match name {
            "HF_ENDPOINT" => Some(endpoint.clone()),
            "HF_TOKEN" => Some("hf_token_of_a_test".to_owned()),
            _ => None,
        };
        let writer = HubWriter::new(Environment::read(&find).unwrap()).unwrap();
        HubWriter { window, ..writer }
    }

    #[test]
    fn a_server_that_sends_or_takes_single_bytes_is_left() {
        let message = |result: Result<Reply, HubError>| result.err().expect("the transfer is too slow").message;
        let writer = writer_for(Duration::from_millis(300), |mut stream| {
            _ = stream.read(&mut [0; 4096]);
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
            while stream.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(50));
            }
        });
        let said = message(writer.get(&writer.environment.url("/x")));
        assert!(said.contains("does not reply: only") && said.contains("bytes arrived in"), "{said}");

        let writer = writer_for(Duration::from_millis(2), |mut stream| {
            while stream.read(&mut [0; 512]).is_ok_and(|read| read > 0) {
                thread::sleep(Duration::from_millis(50));
            }
        });
        // More than the buffers of two sockets take.
        let body = vec![b' '; 32 << 20];
        let said = message(writer.post(&writer.environment.url("/x"), "application/json", &body, &HeaderMap::new()));
        assert!(said.contains("it takes the request too slowly"), "{said}");
    }
}
