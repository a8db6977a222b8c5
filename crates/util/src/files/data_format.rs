//! Formats of data files, by the ending of their names.

use std::path::Path;

/// A format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    Parquet,
    /// JSON lines, one JSON array of objects, or JSON objects one after another.
    Json,
    Csv,
}

/// The endings, in lower case; names may have any case.
const ENDINGS: &[(&str, DataFormat)] = &[
    (".parquet", DataFormat::Parquet),
    (".json", DataFormat::Json),
    (".jsonl", DataFormat::Json),
    (".ndjson", DataFormat::Json),
    (".csv", DataFormat::Csv),
];

/// Ending of a compressed file, after the ending of a format of text.
const GZIP: &str = ".gz";

/// The endings of data files, for messages.
pub const DATA_ENDINGS: &str = ".parquet, .json, .jsonl, .ndjson or .csv (text files also with .gz)";

/// Returns the format of a file of this name, and whether it is compressed with gzip; `None` if it is not a data file.
pub fn data_format(name: &str) -> Option<(DataFormat, bool)> {
    let name = name.to_lowercase();
    let (text, gzip) = name.strip_suffix(GZIP).map_or((name.as_str(), false), |text| (text, true));
    let (_, format) = ENDINGS.iter().find(|(ending, _)| text.ends_with(ending))?;
    (*format != DataFormat::Parquet || !gzip).then_some((*format, gzip))
}

/// Returns the format of a file, like [`data_format`].
pub fn format_of(path: &Path) -> Option<(DataFormat, bool)> {
    data_format(path.file_name()?.to_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_the_ending() {
        let cases = [
            ("a/b.parquet", Some((DataFormat::Parquet, false))),
            ("B.JSONL", Some((DataFormat::Json, false))),
            ("b.ndjson", Some((DataFormat::Json, false))),
            ("b.json.gz", Some((DataFormat::Json, true))),
            ("b.CSV.GZ", Some((DataFormat::Csv, true))),
            ("b.parquet.gz", None),
            ("b.gz", None),
            ("json", None),
            ("b.txt", None),
        ];
        for (name, expected) in cases {
            assert_eq!(format_of(Path::new(name)), expected, "{name}");
        }
    }
}
