//! Tool-call arguments, parsed like Python's `json.loads`.

use serde_json::Value;

use burnish_util::python_json::loads;

/// Parses the arguments of a call. If Python can parse them and a [`Value`] cannot hold them, such as `NaN`, returns the model's
/// text.
///
/// # Errors
/// Python's message, if the arguments are not JSON.
pub(crate) fn read_arguments(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|_| loads(text).map(|_| text.into()))
}
