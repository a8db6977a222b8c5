//! Paths in JSON: text, or bytes if not UTF-8. For `#[serde(with = "burnish_util::path_text")]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::platform::{bytes_of, text_of};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(PathBuf),
    Bytes(Vec<u8>),
}

/// Serializes a path, for `#[serde(with)]`.
///
/// # Errors
/// The errors of the serializer.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => bytes_of(path.as_os_str()).serialize(serializer),
    }
}

/// Deserializes a path, for `#[serde(with)]`.
///
/// # Errors
/// If the value is neither text nor a list of bytes.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Ok(match Written::deserialize(deserializer)? {
        Written::Text(path) => path,
        Written::Bytes(bytes) => text_of(bytes).into(),
    })
}
