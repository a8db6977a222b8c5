//! The place of a row, for messages.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::files::rows::Row;

/// A file and the position of a row in it, from 0; shown as "FILE, row INDEX".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlace {
    pub file: Arc<Path>,
    pub index: usize,
}

impl RowPlace {
    pub(super) fn for_row(row: &Row) -> Self {
        Self { file: row.file.clone(), index: row.index }
    }
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}, row {}", self.file.display(), self.index)
    }
}
