//! Conversion of the service's reply to a verdict on the program.

use serde_json::Value;

use crate::reward_error::{RewardError, RewardFailure};
use burnish_util::python_value::text_of;

/// Result of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseVerdict {
    /// verl's word for the result.
    pub status: &'static str,
    pub passed: bool,
}

impl CaseVerdict {
    pub(crate) const COMPILE_ERROR_SKIPPED: Self = Self::failed("compile_error_skipped");
    const PASSED: Self = Self { status: "success", passed: true };

    const fn failed(status: &'static str) -> Self {
        Self { status, passed: false }
    }

    /// Returns true if the program compiled.
    pub fn compiles(self) -> bool {
        !self.status.starts_with("compile_")
    }
}

/// Returns the verdict of `response` on a case with this expected output.
///
/// # Errors
/// A [`RewardError`] in the cases that verl marks with -1 because the program was not judged: the service failed, not the
/// program.
pub fn from_reply(response: &Value, expected: Option<&str>) -> Result<CaseVerdict, RewardError> {
    let (compile, run) = (&response["compile_result"], &response["run_result"]);
    match response["status"].as_str() {
        Some("Failed") => match (failure_of(compile), failure_of(run)) {
            (Some("timeout"), _) => Ok(CaseVerdict::failed("compile_timeout")),
            (Some(_), _) => Ok(CaseVerdict::failed("compile_error")),
            (None, Some("timeout")) => Ok(CaseVerdict::failed("timeout")),
            (None, Some(_)) => Ok(CaseVerdict::failed("runtime_error")),
            (None, None) => Err(failure(response)),
        },
        Some("Success") if run["status"] == "Finished" => {
            let printed = if run["stdout"].is_null() { String::new() } else { text_of(&run["stdout"]) };
            let same = expected.is_none_or(|expected| printed.trim_end_matches('\n') == expected.trim_end_matches('\n'));
            Ok(if same { CaseVerdict::PASSED } else { CaseVerdict::failed("wrong_answer") })
        }
        _ => Err(failure(response)),
    }
}

/// Returns the kind of failure in compiling or running; `None` if it succeeded.
fn failure_of(result: &Value) -> Option<&'static str> {
    match result["status"].as_str() {
        Some("TimeLimitExceeded") => Some("timeout"),
        Some("Error") => Some("error"),
        Some("Finished") if !is_zero(&result["return_code"]) => Some("error"),
        _ => None,
    }
}

fn is_zero(code: &Value) -> bool {
    code.as_f64() == Some(0.0) || code == &Value::Bool(false)
}

fn failure(response: &Value) -> RewardError {
    let message = &response["message"];
    let message = message.as_str().filter(|text| !text.is_empty()).map_or_else(|| response.to_string(), str::to_owned);
    let status = response["status"].as_str().unwrap_or("none");
    let message: String = message.chars().take(300).collect();
    RewardError { kind: RewardFailure::Exception, message: format!("the reply has the status {status}: {message}") }
}
