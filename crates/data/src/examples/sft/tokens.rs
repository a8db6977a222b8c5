//! One supervised row in tokens.

use crate::examples::document::Document;

/// A row as a document, with notes for warnings.
pub(super) struct SftTokens {
    pub document: Document,
    pub notes: Vec<&'static str>,
}
