//! The key by which the requests of one conversation are known.

use serde_json::{Map, Value};

use super::refused::Refused;

/// The header of the key, in lower case.
pub const CONVERSATION: &str = "x-conversation";

/// The largest number of bytes of a key.
const LONGEST: usize = 512;

/// The key of a request: the header `X-Conversation`, or the first of the fields `conversation`, `metadata.conversation` and `user` that is
/// there. The last is what clients can send that cannot add a header or a field. An empty key is none.
///
/// # Errors
/// If it is longer than 512 bytes.
pub fn conversation_key(
    header: Option<&str>,
    conversation: Option<String>,
    metadata: Option<&Map<String, Value>>,
    user: Option<String>,
) -> Result<Option<String>, Refused> {
    let in_metadata = || metadata?.get("conversation")?.as_str().map(str::to_owned);
    let key = header.map(str::to_owned).or(conversation).or_else(in_metadata).or(user).filter(|key| !key.is_empty());
    match key {
        Some(key) if key.len() > LONGEST => Err(Refused::field(
            "conversation",
            format!("the key of a conversation has at most {LONGEST} bytes, not {}", key.len()),
        )),
        key => Ok(key),
    }
}
