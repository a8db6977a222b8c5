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
    keys: &'static [&'static str],
    /// Further keys, if another listing has the same `keys`.
    further: &'static [&'static str],
}

impl Listing {
    /// Returns the keys of every row, sorted. Later versions may add keys.
    #[must_use]
    pub fn keys(&self) -> Vec<&'static str> {
        let mut keys = [self.keys, self.further].concat();
        keys.sort_unstable();
        keys
    }
}

const fn listing(command: &'static str, row: &'static str, keys: &'static [&'static str]) -> Listing {
    Listing { command, row, keys, further: &[] }
}

/// The keys of a conversion.
const CONVERSION: &[&str] =
    &["differences", "edition", "error", "ignored", "library", "missing", "not_supported", "notes", "recipe", "subcommand"];

/// The keys of a device.
const DEVICE: &[&str] = &["adapter", "bfloat16", "device", "float16", "float32", "memory", "note", "software", "usable"];

/// The keys of a replayed step.
#[rustfmt::skip]
const REPLAY: &[&str] = &[
    "compared", "differences", "equal", "from_step", "layers", "not_compared", "record", "replay", "run", "samples", "seconds",
    "set", "step",
];

/// The keys of a run.
#[rustfmt::skip]
const RUN: &[&str] = &[
    "alarms", "best", "burnish", "bytes", "command", "device", "dir", "duration_s", "ended", "error", "id", "kind", "model", "name",
    "no_signal", "phase", "problems", "resumable", "reward", "started", "state", "step", "sweep",
    "total_steps", "worked",
];

/// The commands with `--json`.
pub const LISTINGS: &[Listing] = &[
    listing("bisect", "the first bad step", &["bad", "good_until", "metric", "replayed", "step", "steps", "value"]),
    listing("config diff", "a setting that differs", &["a", "a_from", "b", "b_from", "key"]),
    listing("config explain", "a setting", &["default", "from", "key", "meaning", "takes", "value"]),
    listing("devices", "a device, or a backend without one", DEVICE),
    listing("doctor", "a check", &["alarm", "check", "explain", "means", "number", "remedy", "sentence", "threshold", "verdict"]),
    listing("fetch", "a file or folder in the cache", &["name", "path"]),
    listing("from-openrlhf", "the conversion", CONVERSION),
    listing("from-trl", "the conversion", CONVERSION),
    listing("from-verl", "the conversion", CONVERSION),
    listing("recipes", "a recipe", &["command", "goal", "hardware", "name", "own_data", "prepare"]),
    listing("replay", "a step made again", REPLAY),
    listing("reward check", "a response", &["response", "row"]),
    listing("runs diff", "a setting that differs, or a result", &["a", "b", "key", "of"]),
    listing("runs ls", "a run", RUN),
    listing("runs samples", "a prompt at a step", &["advantages", "cut", "note", "prompt", "row", "scores", "step", "updates"]),
    Listing { further: &["checkpoints", "metrics"], ..listing("runs show", "the run", RUN) },
    listing("self-check", "a check", &["advice", "check", "found", "ok", "seconds"]),
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
