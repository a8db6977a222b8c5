//! Data: rows of parquet files and of JSON lines.

use std::fs;

use burnish::data::rows::{EVERY_COLUMN, read_rows};

use crate::{Target, files};

pub fn parquet() -> Target {
    Target {
        name: "parquet",
        seeds: || [files("tests/data/parquet", &[".parquet"]), files("data/arithmetic", &["test.parquet"])].concat(),
        words: &["PAR1", "\u{0}", "\u{15}\u{0}", "\u{7f}\u{7f}\u{7f}\u{7f}", "prompt"],
        cases: 1_000,
        read: |input, folder| {
            let path = folder.join("rows.parquet");
            fs::write(&path, input).unwrap();
            _ = read_rows(&[path], &[], EVERY_COLUMN).map_err(|error| format!("{error:#}"));
        },
    }
}

pub fn json_lines() -> Target {
    Target {
        name: "json_lines",
        seeds: || [files("tests/data", &["source.jsonl"]), files("tests/data/rewards", &[".jsonl", ".json"])].concat(),
        words: &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\n",
            "\r\n",
            "\u{feff}",
            "\\u0000",
            "\\ud83d",
            "\"prompt\": ",
            "null",
            "1e999",
        ],
        cases: 1_000,
        read: |input, folder| {
            let path = folder.join("rows.jsonl");
            fs::write(&path, input).unwrap();
            _ = read_rows(&[path], &[], EVERY_COLUMN).map_err(|error| format!("{error:#}"));
        },
    }
}
