//! The addresses of OpenAI's API, for every server that offers them, and its errors.

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;

use burnish_agent::endpoint::{Api, ApiError, EndpointModel, HttpReply};
use burnish_server::{HttpError, HttpResponse, Methods, ResponseBody, json_response};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";
const MODELS: &str = "/v1/models";

/// The subject of a request, by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ApiPath {
    Complete(Api),
    Models,
    /// The model of this name.
    Model(String),
}

impl ApiPath {
    /// Returns the subject of a path; `None` if the path is not one of OpenAI's that is offered here.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        match path {
            CHAT => Some(Self::Complete(Api::Chat)),
            TEXT => Some(Self::Complete(Api::Text)),
            MODELS => Some(Self::Models),
            // Model names contain slashes, which some clients escape.
            path => Some(Self::Model(unescaped(path.strip_prefix(MODELS)?.strip_prefix('/')?))),
        }
    }

    /// Returns the name of the address, without the name of a model.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Complete(Api::Chat) => CHAT,
            Self::Complete(Api::Text) => TEXT,
            Self::Models => MODELS,
            Self::Model(_) => "/v1/models/NAME",
        }
    }

    /// Returns the methods that the address takes.
    pub(crate) fn methods(&self) -> Methods {
        match self {
            Self::Complete(_) => Methods::POST,
            Self::Models | Self::Model(_) => Methods::READ,
        }
    }
}

/// Returns the refusal of an unknown address. `further`: addresses that the server offers in addition to OpenAI's.
pub(crate) fn not_there(head: &Parts, further: &str) -> HttpError {
    let message =
        format!("{} {}: this server has {CHAT}, {TEXT}, {MODELS}, {MODELS}/NAME{further}", head.method, head.uri.path());
    HttpError::new(StatusCode::NOT_FOUND, message)
}

/// Checks the method of a request. `names`: the names of the requests in `allowed`.
///
/// # Errors
/// If the method is not allowed.
/// Returns the names of the methods of `ApiPath::methods`.
/// Returns the reply about models.
///
/// # Errors
/// If no model has the name.
pub fn models(model: &EndpointModel, name: Option<&str>) -> Result<HttpReply, ApiError> {
    name.map_or_else(|| Ok(model.list()), |name| model.named(name)).map(HttpReply::Json)
}

/// Returns the HTTP reply.
pub fn response(sent: HttpReply) -> HttpResponse {
    match sent {
        HttpReply::Json(body) => json_response(StatusCode::OK, &body),
        HttpReply::Events(events) => events_of(ResponseBody::from(hyper::body::Bytes::from(events))),
        HttpReply::Error(refused) => {
            let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = json_response(status, &refused.to_json());
            if status == StatusCode::SERVICE_UNAVAILABLE {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            response
        }
    }
}

/// Returns a reply of server-sent events.
pub(crate) fn events_of(body: ResponseBody) -> HttpResponse {
    let mut response = HttpResponse::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Converts a refusal by the underlying server to OpenAI's form.
pub fn refusal(refusal: HttpError) -> HttpResponse {
    let body = ApiError::status(refusal.status.as_u16(), refusal.message.clone()).to_json();
    refusal.response_with(&body)
}

/// Decodes percent escapes such as `%41` in a part of an address.
pub fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let code = (*first == b'%').then(|| std::str::from_utf8(behind.get(..2)?).ok()).flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_have_slashes() {
        let model = |name: &str| Some(ApiPath::Model(name.to_owned()));
        assert_eq!(ApiPath::parse("/v1/models/a/b"), model("a/b"));
        assert_eq!(ApiPath::parse("/v1/models/a%2Fb"), model("a/b"));
        assert_eq!(ApiPath::parse("/v1/models"), Some(ApiPath::Models));
        assert_eq!(ApiPath::parse("/v1/modelsx"), None);
        assert_eq!(ApiPath::parse("/v1/embeddings"), None);
    }
}
