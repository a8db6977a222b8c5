//! The key that identifies the requests of one conversation.

use serde_json::{Map, Value};

use super::error::ApiError;

/// The header with the key, in lower case.
pub const CONVERSATION_HEADER: &str = "x-conversation";

/// The limit of a key in bytes.
const LONGEST: usize = 512;

/// Returns the key of a request: the header `X-Conversation`, or else the field `conversation` or `metadata.conversation`. An
/// empty key counts as missing. OpenAI's field `user` is not a key: it names a user, who has many conversations.
///
/// # Errors
/// If the key is longer than 512 bytes.
pub(crate) fn conversation_key(
    header: Option<&str>,
    conversation: Option<String>,
    metadata: Option<&Map<String, Value>>,
) -> Result<Option<String>, ApiError> {
    let in_metadata = || metadata?.get("conversation")?.as_str().map(str::to_owned);
    let key = header.map(str::to_owned).or(conversation).or_else(in_metadata).filter(|key| !key.is_empty());
    match key {
        Some(key) if key.len() > LONGEST => Err(ApiError::field(
            "conversation",
            format!("the key of a conversation has at most {LONGEST} bytes, not {}", key.len()),
        )),
        key => Ok(key),
    }
}
