//! The reading of the service's answer as a verdict on the program.

use serde_json::Value;

use crate::failure::{Failure, FailureKind};
use burnish_util::python_value::text_of;

/// The result of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// verl's word for the result.
    pub status: &'static str,
    pub passed: bool,
}

impl Verdict {
    pub const COMPILE_ERROR_SKIPPED: Self = Self::failed("compile_error_skipped");
    const PASSED: Self = Self { status: "success", passed: true };

    const fn failed(status: &'static str) -> Self {
        Self { status, passed: false }
    }

    /// True if the program compiled.
    pub fn compiles(self) -> bool {
        !self.status.starts_with("compile_")
    }
}

/// The verdict that `response` gives for a case with this expected output.
///
/// # Errors
/// A [`Failure`] in the cases that verl marks with -1 for want of a verdict: the service failed, not the program.
pub fn of(response: &Value, expected: Option<&str>) -> Result<Verdict, Failure> {
    let (compile, run) = (&response["compile_result"], &response["run_result"]);
    match response["status"].as_str() {
        Some("Failed") => match (failure_of(compile), failure_of(run)) {
            (Some("timeout"), _) => Ok(Verdict::failed("compile_timeout")),
            (Some(_), _) => Ok(Verdict::failed("compile_error")),
            (None, Some("timeout")) => Ok(Verdict::failed("timeout")),
            (None, Some(_)) => Ok(Verdict::failed("runtime_error")),
            (None, None) => Err(failure(response)),
        },
        Some("Success") if run["status"] == "Finished" => {
            let printed = if run["stdout"].is_null() { String::new() } else { text_of(&run["stdout"]) };
            let same = expected.is_none_or(|expected| printed.trim_end_matches('\n') == expected.trim_end_matches('\n'));
            Ok(if same { Verdict::PASSED } else { Verdict::failed("wrong_answer") })
        }
        _ => Err(failure(response)),
    }
}

/// The kind of failure in compiling or running; `None` if it succeeded.
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

fn failure(response: &Value) -> Failure {
    let said = &response["message"];
    let said = said.as_str().filter(|text| !text.is_empty()).map_or_else(|| response.to_string(), str::to_owned);
    let status = response["status"].as_str().unwrap_or("none");
    let said: String = said.chars().take(300).collect();
    Failure { kind: FailureKind::Exception, message: format!("it answers with the status {status}: {said}") }
}
