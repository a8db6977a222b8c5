//! The arguments of a call, as Python's `json.loads` reads them.

use serde_json::Value;

use burnish_util::python_json::loads;

/// Reads the arguments of a call. What Python reads and a [`Value`] cannot hold, such as `NaN`, is the text that the model wrote.
///
/// # Errors
/// What Python says, if they are no JSON.
pub fn read_arguments(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|_| loads(text).map(|_| text.into()))
}
