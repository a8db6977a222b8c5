//! The paths of the server in addition to OpenAI's.

use crate::job::openai::ApiPath;

/// An addition to OpenAI's addresses: the served tokens of a conversation. DELETE returns and removes them.
pub(super) const CONVERSATIONS: &str = "/v1/conversations/";
pub(super) const HEALTH: &str = "/health";
/// vLLM's additions to OpenAI's addresses.
pub(super) const TOKENIZE: &str = "/tokenize";
pub(super) const DETOKENIZE: &str = "/detokenize";
pub(super) const METRICS: &str = "/metrics";
/// The page, which asks for a token itself.
pub(super) const PAGE: &str = "/";

/// Returns the name of a path in metrics: one of a few, also for paths with names and keys.
pub(super) fn endpoint(path: &str) -> &'static str {
    match (ApiPath::parse(path), path) {
        (Some(address), _) => address.name(),
        (None, path) if path.starts_with(CONVERSATIONS) => "/v1/conversations/KEY",
        (None, path) => [HEALTH, TOKENIZE, DETOKENIZE, METRICS, PAGE].into_iter().find(|known| *known == path).unwrap_or("other"),
    }
}
