//! The selection of columns to read from data files.

use serde_json::{Map, Value};

/// Columns of images, videos and sounds in verl (`data.image_key`, `video_key`, `audio_key`) and TRL (`image`, `images`).
pub const MEDIA_COLUMNS: &[&str] = &["images", "image", "videos", "video", "audios", "audio"];

/// Value for the `optional` columns of [`FileRows::read`](super::rows::FileRows::read) that selects every column.
pub const EVERY_COLUMN: &[&str] = &["*"];

/// Values of a row by column.
pub(crate) type RowValues = Map<String, Value>;

/// The columns to read.
pub(crate) struct ColumnSelection {
    names: Vec<String>,
    every: bool,
}

impl ColumnSelection {
    pub(crate) fn new(required: &[&str], optional: &[&str]) -> Self {
        let names = required.iter().chain(optional).map(|name| (*name).to_owned()).collect();
        Self { names, every: optional == EVERY_COLUMN }
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.every || self.names.iter().any(|name| name == column)
    }
}
