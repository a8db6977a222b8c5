//! `--json`: the rows of a listing as JSON, one object per line.

use clap::Args;
use serde_json::Value;

use super::error::CliError;
use super::print::print_data;

/// The flag of every command in [`LISTINGS`].
#[derive(Args, Clone, Copy, Default)]
pub(super) struct JsonArg {
    /// Print a JSON object per row
    #[arg(long)]
    pub(super) json: bool,
}

/// Prints each row as a JSON object on one line.
///
/// # Errors
/// If standard output cannot be written.
pub(super) fn print_rows(rows: impl IntoIterator<Item = Value>) -> Result<(), CliError> {
    print_data(&rows.into_iter().map(|row| format!("{row}\n")).collect::<String>())
}

/// A command that lists something.
pub struct Listing {
    /// The command's name, after that of the program.
    pub command: &'static str,
    /// The subject of a row.
    pub row: &'static str,
    /// The keys of every row, sorted. Later versions may add keys.
    pub keys: &'static [&'static str],
}

/// The keys of a conversion.
const CONVERSION: &[&str] =
    &["differences", "edition", "error", "ignored", "library", "missing", "not_supported", "notes", "recipe", "subcommand"];

/// The commands with `--json`.
pub const LISTINGS: &[Listing] = &[
    Listing { command: "config diff", row: "a setting that differs", keys: &["a", "a_from", "b", "b_from", "key"] },
    Listing { command: "config explain", row: "a setting", keys: &["default", "from", "key", "meaning", "takes", "value"] },
    Listing {
        command: "devices",
        row: "a device, or a backend without one",
        keys: &["adapter", "bfloat16", "device", "float16", "float32", "memory", "note", "software", "usable"],
    },
    Listing { command: "fetch", row: "a file or folder in the cache", keys: &["name", "path"] },
    Listing { command: "from-openrlhf", row: "the conversion", keys: CONVERSION },
    Listing { command: "from-trl", row: "the conversion", keys: CONVERSION },
    Listing { command: "from-verl", row: "the conversion", keys: CONVERSION },
    Listing { command: "recipes", row: "a recipe", keys: &["command", "goal", "hardware", "name", "own_data", "prepare"] },
    Listing { command: "reward check", row: "a response", keys: &["response", "row"] },
    Listing { command: "runs diff", row: "a setting that differs, or a result", keys: &["a", "b", "key", "of"] },
    Listing {
        command: "runs ls",
        row: "a run",
        keys: &[
            "best",
            "burnish",
            "bytes",
            "command",
            "device",
            "dir",
            "duration_s",
            "ended",
            "error",
            "id",
            "kind",
            "model",
            "name",
            "no_signal",
            "phase",
            "problems",
            "resumable",
            "reward",
            "started",
            "state",
            "step",
            "total_steps",
            "worked",
        ],
    },
    Listing {
        command: "runs show",
        row: "the run",
        keys: &[
            "best",
            "burnish",
            "bytes",
            "checkpoints",
            "command",
            "device",
            "dir",
            "duration_s",
            "ended",
            "error",
            "id",
            "kind",
            "metrics",
            "model",
            "name",
            "no_signal",
            "phase",
            "problems",
            "resumable",
            "reward",
            "started",
            "state",
            "step",
            "total_steps",
            "worked",
        ],
    },
    Listing { command: "self-check", row: "a check", keys: &["advice", "check", "found", "ok", "seconds"] },
];

/// The other commands, and what a program reads in place of a listing.
pub const NOT_LISTING: &[(&str, &str)] = &[
    ("", TRAINS),
    ("run", TRAINS),
    ("sft", TRAINS),
    ("rm", TRAINS),
    ("dpo", TRAINS),
    ("distill", TRAINS),
    ("init", "the recipe that it writes"),
    ("generate", "the file of responses that it writes"),
    ("eval", "the scores, which it prints as one JSON object"),
    ("chat", "the answer on standard output"),
    ("serve", "OpenAI's protocol"),
    ("serve-rm", "the protocol of OpenRLHF's serve_rm"),
    ("report", "the page that it writes, or the summary of `--markdown`"),
    ("runs rm", EXIT),
    ("data", "the parquet files that it writes"),
    ("data select", "the file that it writes"),
    ("export", "the folder that it writes"),
    ("config show", "all settings, as YAML or with `--format json`"),
    ("config schema", "a JSON Schema"),
    ("completions", "a script for a shell"),
    ("man", "a manual page"),
];

const TRAINS: &str = "metrics.jsonl and run.json in the folder of the run, which `runs show --json` reads";
const EXIT: &str = "the exit code";
