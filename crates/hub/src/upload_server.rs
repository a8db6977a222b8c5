//! Requests that change a repository on the Hub: what is sent, and what an answer means.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
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
use super::failure::{Failure, origin};
use burnish_util::secret::hide;

/// The longest wait for an answer: a commit of many files, or the joining of a large file's parts, takes its time.
const ANSWER: Duration = Duration::from_secs(180);
/// The most bytes of an answer that are read.
const MOST_BYTES: u64 = 64 << 20;
/// The number of characters of an answer that an error quotes.
const QUOTED: usize = 300;

/// The Hub, asked with a token that may write.
pub(super) struct Server {
    pub environment: Environment,
    agent: Agent,
    authorization: HeaderValue,
}

/// An answer of any status that is no passing trouble.
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Server {
    /// Prepares requests; nothing is sent yet.
    ///
    /// # Errors
    /// If the Hub may not be asked, or there is no token.
    pub fn new(environment: Environment) -> Result<Self, Failure> {
        if environment.offline {
            return Err(Failure::last("HF_HUB_OFFLINE is set: nothing can be pushed", "unset it"));
        }
        let Some(authorization) = environment.authorization()? else {
            let tokens = environment.url("/settings/tokens");
            return Err(Failure::last(
                "there is no token, without which nothing can be pushed",
                format!("make one that may write at {tokens}, and set HF_TOKEN to it (or log in with `hf auth login`)"),
            ));
        };
        if environment.is_overheard() {
            tracing::warn!("HF_ENDPOINT: whoever listens on the way can read the token, since the address is not https");
        }
        Ok(Self { agent: environment.agent(), authorization, environment })
    }

    /// Gets an address.
    ///
    /// # Errors
    /// If nobody answers, or the server is in trouble.
    pub fn get(&self, address: &str) -> Result<Answer, Failure> {
        let uri = parsed(address)?;
        let request = self.signed(self.agent.get(&uri), &uri);
        let request = request.config().max_redirects(5).redirect_auth_headers(RedirectAuthHeaders::SameHost);
        let request: RequestBuilder<WithoutBody> =
            request.timeout_recv_response(Some(ANSWER)).timeout_per_read(Some(ANSWER)).build();
        self.answered(&uri, request.call())
    }

    /// Posts a body, with further headers of the address.
    ///
    /// # Errors
    /// Those of [`Self::get`].
    pub fn post(&self, address: &str, kind: &str, body: &[u8], more: &HeaderMap) -> Result<Answer, Failure> {
        let uri = parsed(address)?;
        let request = self.signed(self.agent.post(&uri), &uri).header(CONTENT_TYPE, kind).header("accept", kind_of_answer(kind));
        let request = more.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request: RequestBuilder<WithBody> =
            request.config().timeout_recv_response(Some(ANSWER)).timeout_per_read(Some(ANSWER)).build();
        self.answered(&uri, request.send(body))
    }

    /// Puts a part of a file.
    ///
    /// # Errors
    /// Those of [`Self::get`], or if the file cannot be read.
    pub fn put(&self, address: &str, more: &HeaderMap, file: &Path, from: u64, length: u64) -> Result<Answer, Failure> {
        let uri = parsed(address)?;
        let mut source = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
        source.seek(SeekFrom::Start(from)).with_context(|| format!("cannot read {}", file.display()))?;
        let request = self.signed(self.agent.put(&uri), &uri).header(CONTENT_LENGTH, length);
        let request = more.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request: RequestBuilder<WithBody> =
            request.config().timeout_recv_response(Some(ANSWER)).timeout_per_read(Some(ANSWER)).build();
        self.answered(&uri, request.send(SendBody::from_owned_reader(source.take(length))))
    }

    /// An address that the server named, with a mirror's in place of the Hub's own.
    pub fn reachable(&self, address: &str) -> String {
        let own = self.environment.url("");
        match address.strip_prefix(HUB) {
            Some(rest) if own != HUB => format!("{own}{rest}"),
            _ => address.to_owned(),
        }
    }

    /// A request with the token, if it goes to the Hub itself and not to a store.
    fn signed<B>(&self, request: RequestBuilder<B>, uri: &Uri) -> RequestBuilder<B> {
        match self.environment.is_endpoint(uri) {
            true => request.header(AUTHORIZATION, &self.authorization),
            false => request,
        }
    }

    fn answered(&self, uri: &Uri, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, Failure> {
        let broken = |error: ureq::Error| Failure::unanswered(uri, &error, ANSWER);
        let mut answer = answer.map_err(broken)?;
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(broken)?;
        let answer = Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), body };
        match answer.status {
            408 | 429 | 500.. => {
                Err(Failure::passing(format!("{} answers with status {}{}", origin(uri), answer.status, answer.said())))
            }
            _ => Ok(answer),
        }
    }

    /// The JSON of a successful answer about a repository.
    ///
    /// # Errors
    /// If the answer is a refusal, or no JSON.
    pub fn json(&self, repo: &str, answer: &Answer) -> Result<Value, Failure> {
        if !(200..300).contains(&answer.status) {
            return Err(self.refused(repo, answer));
        }
        let wrong = || Failure::last(format!("{} does not answer as the Hub does", self.environment.url("")), "");
        serde_json::from_slice(&answer.body).map_err(|_| wrong())
    }

    /// The failure of a request that was refused.
    pub fn refused(&self, repo: &str, answer: &Answer) -> Failure {
        let (endpoint, said) = (self.environment.url(""), answer.said());
        let tokens = format!("{endpoint}/settings/tokens");
        match answer.status {
            401 => Failure::last(
                format!("{endpoint} does not accept the token{said}"),
                format!("make one that may write at {tokens}, and set HF_TOKEN to it"),
            ),
            403 => Failure::last(
                format!("the token may not write to `{repo}` at {endpoint}{said}"),
                format!("use a token that may write there, made at {tokens}, or push under another name"),
            ),
            404 => Failure::last(
                format!("{endpoint} knows no `{repo}`, or the token may not see it{said}"),
                "check the name, and the branch of --revision",
            ),
            409 | 412 => Failure::last(
                format!("`{repo}` at {endpoint} is being changed by somebody else{said}"),
                "push again: what has arrived is not sent twice",
            ),
            413 => Failure::last(
                format!("{endpoint} does not take so much at once{said}"),
                "--max-shard-size makes the files of weights smaller",
            ),
            300..=399 => {
                let to = answer.headers.get("location").and_then(|to| to.to_str().ok()).unwrap_or("another address");
                Failure::last(
                    format!("{endpoint} redirects to {to}"),
                    format!("perhaps `{repo}` was renamed: push under its new name"),
                )
            }
            status => Failure::last(format!("{endpoint} answers with status {status}{said}"), ""),
        }
    }
}

impl Answer {
    /// The server's own words, as ": WORDS" on one line, or nothing. A secret that it echoes is hidden.
    fn said(&self) -> String {
        let header = self.headers.get("x-error-message").and_then(|said| said.to_str().ok()).map(str::to_owned);
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

fn kind_of_answer(kind: &str) -> &str {
    if kind.contains("git-lfs") { kind } else { "application/json" }
}

fn parsed(address: &str) -> Result<Uri, Failure> {
    // The address of a store is signed, and so is not shown.
    address.parse().map_err(|_| Failure::last("the server names an address that is none", ""))
}

/// A part of an address, with everything escaped that has a meaning there.
pub(super) fn quoted(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    part.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
