//! Data: rows of parquet files, of JSON lines, of CSV and of compressed files.

use std::fs;

use burnish::data::rows::{EVERY_COLUMN, read_rows};

use crate::{Target, files};

pub(crate) fn parquet() -> Target {
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

pub(crate) fn json_lines() -> Target {
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
            "NaN",
            "-Infinity",
        ],
        cases: 1_000,
        read: |input, folder| {
            let path = folder.join("rows.jsonl");
            fs::write(&path, input).unwrap();
            _ = read_rows(&[path], &[], EVERY_COLUMN).map_err(|error| format!("{error:#}"));
        },
    }
}

/// The same bytes as CSV and as a compressed file.
pub(crate) fn csv_and_gzip() -> Target {
    const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xabVJT\xb2R0\xac\xe5\x02\0\xfa\xa1G\\\x09\0\0\0";
    Target {
        name: "csv_and_gzip",
        seeds: || vec![b"prompt,x\n\"a, \"\"b\"\"\nc\",1\n,2.5\n".to_vec(), GZIP.to_vec()],
        words: &[",", "\"", "\r\n", "\n", "\u{feff}", "1e999", "\u{1f}\u{8b}", "\u{0}"],
        cases: 1_000,
        read: |input, folder| {
            for name in ["rows.csv", "rows.jsonl.gz"] {
                let path = folder.join(name);
                fs::write(&path, input).unwrap();
                _ = read_rows(&[path], &[], EVERY_COLUMN).map_err(|error| format!("{error:#}"));
            }
        },
    }
}
