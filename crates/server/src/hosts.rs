//! The host names that a server accepts.
//!
//! Any page in a browser can send requests to this machine. `Host` shows a foreign name that resolves here (DNS rebinding), and
//! `Origin` shows a page of another server.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use super::cors::CorsOrigins;
use super::http_error::HttpError;
use burnish_util::platform::host_name;

/// The host names that a server accepts.
#[derive(Clone, Debug)]
pub enum Hosts {
    /// Only these names, in lower case.
    Named(Vec<String>),
    /// These names and every IP address, since an address cannot be rebound.
    NamedOrAddress(Vec<String>),
    /// Any name, for servers with a token, which no page has.
    Any,
}

impl Hosts {
    /// Accepts only this machine's names for itself.
    pub fn loopback() -> Self {
        Self::Named(["127.0.0.1", "localhost"].map(str::to_owned).to_vec())
    }

    /// Returns the names of a server that listens at `host`: this machine's names, `further` ones, and every IP address. With a
    /// token, any name.
    pub(crate) fn for_server(host: &str, further: &[String], has_token: bool) -> Self {
        if has_token {
            return Self::Any;
        }
        let machine = host_name();
        let names = [host, "localhost", &machine];
        Self::NamedOrAddress(names.into_iter().map(str::to_owned).chain(further.iter().cloned()).collect())
    }

    fn has(&self, name: &str) -> bool {
        let is_address = || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let is_named = |names: &[String]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        match self {
            Self::Any => true,
            Self::Named(names) => is_named(names),
            Self::NamedOrAddress(names) => is_named(names) || is_address(),
        }
    }

    /// Checks the host that a request names, and the page that sent it, which may be one of `cors`.
    ///
    /// # Errors
    /// 400 for a request without exactly one host, 403 for a foreign name or page.
    pub(super) fn check(&self, head: &Parts, cors: &CorsOrigins) -> Result<(), HttpError> {
        let host = only(head, HOST)?.ok_or_else(|| HttpError::malformed("the header Host is missing"))?;
        if head.uri.authority().is_some_and(|authority| authority.as_str() != host) {
            return Err(HttpError::malformed("the request names another server than its header Host"));
        }
        let forbidden = |message| Err(HttpError::new(StatusCode::FORBIDDEN, message));
        let name = host.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'));
        if !name.is_some_and(|name| self.has(name.host())) {
            return forbidden(format!("this server is not {host:?}"));
        }
        match only(head, ORIGIN)? {
            Some(origin) if origin.strip_prefix("http://") != Some(host) && cors.allowed(&head.headers).is_none() => {
                forbidden(format!("pages of {origin:?} may not ask this server"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the text of a header that may occur at most once.
fn only(head: &Parts, name: HeaderName) -> Result<Option<&str>, HttpError> {
    let mut values = head.headers.get_all(&name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or("?"));
    if values.next().is_some() { Err(HttpError::malformed(format!("the header {name} occurs twice"))) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_and_pages_are_refused() {
        let named = Hosts::loopback();
        let open = Hosts::NamedOrAddress(vec!["localhost".into(), "gpu-7".into()]);
        let status = |hosts: &Hosts, uri: &str, headers: &[(HeaderName, &str)]| {
            let mut request = hyper::Request::get(uri);
            for (name, value) in headers {
                request = request.header(name, *value);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            hosts.check(&head, &CorsOrigins::default()).map_or_else(|error| error.status.as_u16(), |()| 200)
        };
        // Status for each host: of a loopback server, of a server for others, and of a server with a token.
        for (host, loopback, others, token) in [
            ("127.0.0.1:4000", 200, 200, 200),
            ("LOCALHOST", 200, 200, 200),
            ("gpu-7:5000", 403, 200, 200),
            ("192.168.1.9:5000", 403, 200, 200),
            ("[::1]:80", 403, 200, 200),
            ("evil.example", 403, 403, 200),
            ("127.0.0.1.evil.example:80", 403, 403, 200),
            ("localhost@evil.example", 403, 403, 403),
            ("evil@localhost", 403, 403, 403),
            ("evil.example:127.0.0.1", 403, 403, 200),
            ("", 403, 403, 403),
            ("\u{e9}", 403, 403, 403),
        ] {
            let statuses = [&named, &open, &Hosts::Any].map(|hosts| status(hosts, "/", &[(HOST, host)]));
            assert_eq!(statuses, [loopback, others, token], "{host}");
        }
        let host = (HOST, "localhost:80");
        for (origin, expected) in
            [("http://localhost:80", 200), ("http://localhost:81", 403), ("https://localhost:80", 403), ("null", 403)]
        {
            for hosts in [&named, &open, &Hosts::Any] {
                assert_eq!(status(hosts, "/", &[host.clone(), (ORIGIN, origin)]), expected, "{origin}");
            }
        }
        assert_eq!(status(&named, "/", &[]), 400);
        assert_eq!(status(&named, "/", &[host.clone(), (HOST, "evil.example")]), 400);
        assert_eq!(status(&named, "http://evil.example/", std::slice::from_ref(&host)), 400);
        assert_eq!(status(&named, "http://localhost:80/", &[host]), 200);
    }
}
