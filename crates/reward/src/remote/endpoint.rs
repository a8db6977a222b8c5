//! Address of a reward server, checked before any request is sent, and the state of the server.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use ureq::http::Uri;

/// Path of the reward on OpenRLHF's server and on `trainer serve-rm`.
const USUAL_PATH: &str = "/get_reward";

/// Address of a reward server; it is displayed unchanged.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub url: Uri,
    text: String,
    failing: AtomicBool,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Endpoint {
    /// Parses an address.
    ///
    /// # Errors
    /// If `text` is not an http or https address with a host and a path.
    pub(super) fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        ensure!(!text.is_empty(), "the address of the reward server is empty");
        ensure!(!text.contains('@'), "the address of a reward server must not contain a user name or an @; use a token instead");
        if text.ends_with(".py") {
            bail!("{text}: this is not the address of a reward server; a Python file belongs into custom_reward_function.path");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            bail!("{text}: the address of a reward server begins with http:// or https://; did you mean http://{text}?");
        };
        let known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        ensure!(known, "{text}: a reward server must be reached by http or https, not {scheme}");
        let url: Uri = text.parse().with_context(|| format!("{text}: this is not an address"))?;
        let authority = url.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.with_context(|| format!("{text}: the address has no host"))?;
        let port = authority.as_str().len() == authority.host().len() || authority.port_u16().is_some_and(|port| port > 0);
        ensure!(port, "{text}: the port must be a number from 1 to 65535");
        ensure!(
            rest.contains('/'),
            "{text}: the address has no path: write {text}{USUAL_PATH} for OpenRLHF's server and trainer serve-rm, or {text}/ if it \
             has none"
        );
        Ok(Self { url, text: text.to_owned(), failing: AtomicBool::new(false) })
    }

    /// Returns true if others can read the traffic: the server is on another machine and the connection is not encrypted.
    pub(crate) fn is_overheard(&self) -> bool {
        let host = self.url.host().unwrap_or_default().trim_matches(['[', ']']);
        let local = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        self.url.scheme_str() != Some("https") && !local
    }

    /// Warns that the server fails, only once until it replies again.
    pub(super) fn fails(&self, why: &str) {
        if !self.failing.swap(true, Ordering::Relaxed) {
            tracing::warn!("the reward server {self} fails and will be retried: {why}");
        }
    }

    pub(super) fn answers(&self) {
        if self.failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the reward server {self} replies again");
        }
    }
}
