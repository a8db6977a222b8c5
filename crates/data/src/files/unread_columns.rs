//! Names the columns of files that nothing reads: one of them may hold a part of the text.

use super::rows::Rows;

/// Columns that belong to what a model reads or learns, wherever a data set has them.
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

/// Warns of columns that matter by their name and are not among those that are `read`.
pub fn name_unread(rows: &Rows, read: &[&str]) {
    let unread: Vec<String> =
        rows.columns().filter(|name| MATTER.contains(name) && !read.contains(name)).map(|name| format!("\"{name}\"")).collect();
    if let (Some(file), false) = (rows.first_file(), unread.is_empty()) {
        let (noun, it) = if unread.len() == 1 { ("column", "it is") } else { ("columns", "they are") };
        tracing::warn!("{}: nothing reads the {noun} {}: {it} no part of what the model gets", file.display(), unread.join(", "));
    }
}
