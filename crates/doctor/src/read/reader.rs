//! The type of readers.

use std::path::Path;

use anyhow::Result;

use crate::evidence::Evidence;

/// Reads a form of record. Returns `None` if the path has another form.
pub(super) type RecordReader = fn(&Path) -> Result<Option<Evidence>>;
