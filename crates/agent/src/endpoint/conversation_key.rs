//! The key that identifies the requests of one conversation.

use serde_json::{Map, Value};

use super::error::ApiError;

/// The header with the key, in lower case.
pub const CONVERSATION_HEADER: &str = "x-conversation";

/// The limit of a key in bytes.
const LONGEST: usize = 512;

/// Returns the key of a request: the header `X-Conversation`, or the first present field of `conversation`,
/// `metadata.conversation` and `user`. The last is for clients that can add neither a header nor a field. An empty key counts as
/// missing.
///
/// # Errors
/// If the key is longer than 512 bytes.
pub fn conversation_key(
    header: Option<&str>,
    conversation: Option<String>,
    metadata: Option<&Map<String, Value>>,
    user: Option<String>,
) -> Result<Option<String>, ApiError> {
    let in_metadata = || metadata?.get("conversation")?.as_str().map(str::to_owned);
    let key = header.map(str::to_owned).or(conversation).or_else(in_metadata).or(user).filter(|key| !key.is_empty());
    match key {
        Some(key) if key.len() > LONGEST => Err(ApiError::field(
            "conversation",
            format!("the key of a conversation has at most {LONGEST} bytes, not {}", key.len()),
        )),
        key => Ok(key),
    }
}
