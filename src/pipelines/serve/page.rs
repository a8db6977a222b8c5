//! The page at `/`: a chat with the served model, in one file without dependencies.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};

use burnish_server::HttpResponse;

const PAGE: &str = include_str!("page.html");

/// The policy of the page: only its own script and style run, and it asks only its own server.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |tag: &str| {
        let inner = PAGE.split_once(&format!("<{tag}>")).and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
        STANDARD.encode(Sha256::digest(inner.map_or("", |(inner, _)| inner)))
    };
    let (script, style) = (hash("script"), hash("style"));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// Returns the page.
pub(super) fn page() -> HttpResponse {
    let mut response = HttpResponse::new(Bytes::from_static(PAGE.as_bytes()).into());
    let fixed: [(HeaderName, &'static str); 4] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let headers = response.headers_mut();
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.extend(HeaderValue::from_str(&POLICY).ok().map(|policy| (CONTENT_SECURITY_POLICY, policy)));
    response
}
