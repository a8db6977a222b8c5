//! The columns of data files: which are read.

use serde_json::{Map, Value};

/// The columns that verl (`data.image_key`, `video_key`, `audio_key`) and TRL (`image`, `images`) read images, videos and sounds
/// from.
pub const MEDIA_COLUMNS: &[&str] = &["images", "image", "videos", "video", "audios", "audio"];

/// A value for the `optional` columns of [`Rows::read`](super::rows::Rows::read): every column of the files.
pub const EVERY_COLUMN: &[&str] = &["*"];

/// The columns of a row, with their names.
pub(crate) type Columns = Map<String, Value>;

/// The columns that are read.
pub(crate) struct ColumnSelection {
    names: Vec<String>,
    every: bool,
}

impl ColumnSelection {
    pub fn new(required: &[&str], optional: &[&str]) -> Self {
        let names = required.iter().chain(optional).map(|name| (*name).to_owned()).collect();
        Self { names, every: optional == EVERY_COLUMN }
    }

    pub fn has(&self, column: &str) -> bool {
        self.every || self.names.iter().any(|name| name == column)
    }
}
