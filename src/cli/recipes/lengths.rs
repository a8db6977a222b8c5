//! The lengths of a user's rows in tokens, about: the template of a chat adds some tokens to each message.

use std::path::Path;

use serde_json::Value;

use burnish_data::Tokenizer;
use burnish_data::rows::FileRows;
use burnish_util::fs::read_json;

/// Number of rows that are measured.
const ROWS: usize = 2_000;
/// Assumed tokens that a chat template adds to a message.
const PER_MESSAGE: usize = 8;
/// Lengths are rounded up to a multiple of this number, after this many tokens were added.
const STEP: usize = 64;

/// The longest measured prompt and the longest response.
pub(super) struct MeasuredLengths {
    pub prompt: usize,
    pub response: usize,
}

/// Measures the columns with the tokenizer of a model; `None` if the model is not a folder with a tokenizer.
pub(super) fn measure(model: &Path, rows: &FileRows, prompt: Option<&str>, responses: &[&str]) -> Option<MeasuredLengths> {
    let tokenizer = Tokenizer::load(model).ok()?;
    let mut longest = MeasuredLengths { prompt: 0, response: 0 };
    for index in 0..rows.len().min(ROWS) {
        let row = rows.row(index).ok()?;
        let of = |name: &str| row.column(name).map_or(0, |value| tokens(&tokenizer, value));
        longest.prompt = longest.prompt.max(prompt.map_or(0, of));
        longest.response = responses.iter().map(|name| of(name)).fold(longest.response, usize::max);
    }
    Some(longest)
}

/// Returns a limit for texts of a measured length.
pub(super) fn limit(measured: usize) -> usize {
    (measured + STEP).div_ceil(STEP) * STEP
}

/// Returns the number of positions of a model in a local folder; `None` if the model does not limit it.
pub(super) fn positions(model: &Path) -> Option<usize> {
    let config: Value = read_json(&model.join("config.json")).ok()?;
    let keys = ["max_position_embeddings", "n_positions"];
    keys.iter().find_map(|key| config[*key].as_u64()).and_then(|count| usize::try_from(count).ok())
}

/// Counts the tokens of all texts in a cell.
fn tokens(tokenizer: &Tokenizer, value: &Value) -> usize {
    match value {
        Value::String(text) => tokenizer.encode_plain(text).map_or(0, |ids| ids.len()),
        Value::Array(items) => items.iter().map(|item| tokens(tokenizer, item) + PER_MESSAGE).sum(),
        Value::Object(fields) => fields.values().map(|field| tokens(tokenizer, field)).sum(),
        _ => 0,
    }
}
