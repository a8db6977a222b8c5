//! Warns about unread columns, which may hold a part of the text.

use super::rows::FileRows;

/// Column names that usually hold something that a model reads or learns.
const MATTER: &[&str] = &[
    "system",
    "system_prompt",
    "instruction",
    "input",
    "context",
    "history",
    "documents",
    "functions",
    "reasoning",
    "reasoning_content",
    "thinking",
    "rationale",
    "loss_mask",
    "mask",
    "weight",
];

/// Warns about columns with an important name that are not among the `read` ones.
pub fn name_unread(rows: &FileRows, read: &[&str]) {
    let unread: Vec<String> =
        rows.columns().filter(|name| MATTER.contains(name) && !read.contains(name)).map(|name| format!("\"{name}\"")).collect();
    if let (Some(file), false) = (rows.first_file(), unread.is_empty()) {
        let (noun, is, it) = if unread.len() == 1 { ("column", "is", "it") } else { ("columns", "are", "them") };
        tracing::warn!("{}: the {noun} {} {is} not read, so the model does not see {it}", file.display(), unread.join(", "));
    }
}
