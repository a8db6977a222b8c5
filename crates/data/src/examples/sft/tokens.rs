//! One supervised row in tokens.

use crate::examples::document::Document;

/// A row as a document, and what is to be said of it.
pub(super) struct SftTokens {
    pub document: Document,
    pub notes: Vec<&'static str>,
}
