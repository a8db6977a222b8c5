//! Pages of other servers that may ask this server (cross-origin resource sharing, <https://fetch.spec.whatwg.org/#http-cors-protocol>).

use anyhow::{Result, ensure};
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode};

use super::body::ResponseBody;
use super::http_error::HttpResponse;

/// The methods of all paths of all servers.
const METHODS: &str = "GET, HEAD, POST, DELETE";
/// Seconds for which a browser may remember the answer to its question.
const MAX_AGE: &str = "600";

/// The origins whose pages may ask a server, such as `http://localhost:3000`; `*` allows all.
#[derive(Clone, Debug, Default)]
pub struct CorsOrigins(Vec<String>);

impl CorsOrigins {
    /// Checks origins.
    ///
    /// # Errors
    /// If one is neither `*` nor a scheme with a host and, if needed, a port.
    pub fn new(origins: &[String]) -> Result<Self> {
        for origin in origins.iter().filter(|origin| *origin != "*") {
            let (scheme, host) = origin.split_once("://").unwrap_or_default();
            let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
            let is_plain = host.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@*".contains(&byte));
            ensure!(
                is_scheme && !scheme.is_empty() && is_plain && !host.is_empty(),
                "{origin:?} is not an origin: give the scheme, the host and the port, such as http://localhost:3000"
            );
            let port = match scheme.to_ascii_lowercase().as_str() {
                "http" => ":80",
                "https" => ":443",
                _ => continue,
            };
            ensure!(!host.ends_with(port), "{origin:?}: browsers leave the port {port} of {scheme} out; leave it out too");
        }
        Ok(Self(origins.to_vec()))
    }

    /// Returns true if pages of every origin may ask.
    pub fn allow_all(&self) -> bool {
        self.0.iter().any(|origin| origin == "*")
    }

    /// Returns the origin of a request, if its pages may ask.
    pub(crate) fn allowed<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let mut sent = headers.get_all(ORIGIN).iter();
        let (origin, None) = (sent.next()?, sent.next()) else { return None };
        let is_known = |known: &String| known.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
        (self.allow_all() || self.0.iter().any(is_known)).then_some(origin)
    }

    /// Returns the reply to the question of a browser whether a page may send a request (preflight). The question has no token.
    pub(crate) fn preflight(&self, head: &Parts) -> Option<HttpResponse> {
        let asks = head.method == Method::OPTIONS && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        self.allowed(&head.headers).filter(|_| asks)?;
        let mut response = HttpResponse::new(ResponseBody::from(hyper::body::Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
        if let Some(wanted) = head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        Some(response)
    }

    /// Lets the page that sent a request read the response.
    pub(crate) fn share(origin: HeaderValue, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_checked_and_compared_as_a_whole() {
        let origins = |texts: &[&str]| CorsOrigins::new(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        for wrong in ["", "localhost:3000", "http://", "http://a/", "http://a b", "http://*.a", "http://u@a", "://a", " http://a"]
        {
            assert!(origins(&[wrong]).is_err_and(|error| error.to_string().contains("is not an origin")), "{wrong}");
        }
        for port in ["http://a:80", "HTTPS://a.example:443"] {
            assert!(origins(&[port]).is_err_and(|error| error.to_string().contains("leave it out too")), "{port}");
        }
        assert!(origins(&["http://a:8080", "https://a:80", "chrome-extension://a"]).is_ok());
        let allows = |known: &[&str], sent: &[&str]| {
            let mut headers = HeaderMap::new();
            sent.iter().for_each(|origin| _ = headers.append(ORIGIN, origin.parse().unwrap()));
            origins(known).unwrap().allowed(&headers).is_some()
        };
        let known = &["http://localhost:3000", "https://a.example"];
        assert!(allows(known, &["http://localhost:3000"]) && allows(known, &["HTTPS://A.example"]));
        assert!(allows(&["*"], &["null"]));
        for foreign in ["http://localhost:30000", "http://localhost", "http://a.example", "null", "*"] {
            assert!(!allows(known, &[foreign]) && !allows(&[], &[foreign]), "{foreign}");
        }
        assert!(!allows(&["*"], &[]) && !allows(&["*"], &["http://a", "http://b"]));
    }
}
