//! verl's tool that runs programs in a Sandbox Fusion service (`verl.tools.sandbox_fusion_tools.SandboxFusionTool` of verl up to
//! 0.7).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::settings::{address, count, seconds};
use super::tool::{BuiltInKind, BuiltInTool, ToolError, ToolOutput};
use crate::ReplyFailure;
use burnish_reward::reward_error::RewardFailure;
use burnish_reward::sandbox::{Sandbox, SandboxOptions};
use burnish_util::interrupt::Interrupt;
use burnish_util::python_value::text_of;

pub(super) static SANDBOX: BuiltInKind = BuiltInKind {
    name: "code_interpreter",
    class_names: &["verl.tools.sandbox_fusion_tools.SandboxFusionTool"],
    doc: "the output of a Python program, which the service at sandbox_fusion_url runs",
    settings: &[
        "sandbox_fusion_url",
        "default_timeout",
        "default_language",
        "memory_limit_mb",
        "rate_limit",
        "num_workers",
        "enable_global_rate_limit",
    ],
    schema: || {
        json!({"type": "function", "function": {
            "name": "code_interpreter",
            "description": "Runs a Python program and returns what it prints.",
            "parameters": {
                "type": "object",
                "properties": {"code": {"type": "string", "description": "The program"}},
                "required": ["code"],
            },
        }})
    },
    make: |config| {
        let url = address(config, "sandbox_fusion_url", "http://127.0.0.1:8080/run_code")?;
        let language = config["default_language"].as_str().unwrap_or("python");
        ensure!(language == "python", "`default_language` is {language}: programs are run as python");
        let max = count(config, "rate_limit", 10)?.min(count(config, "num_workers", 10)?);
        let options = SandboxOptions {
            url: url.to_string(),
            max_concurrent: usize::try_from(max).context("`rate_limit` is too large")?,
            memory_limit_mb: count(config, "memory_limit_mb", 1024)?,
            // The toolbox checks for interrupts.
            interrupt: Interrupt::default(),
        };
        Ok(Box::new(Code { service: Sandbox::new(options)?, timeout: seconds(config, "default_timeout", 30)? }))
    },
};

struct Code {
    service: Sandbox,
    timeout: Duration,
}

impl BuiltInTool for Code {
    fn waits(&self) -> bool {
        true
    }

    /// Returns the program's output followed by its errors, like verl's `execute_code`. A failing service is an error here; in
    /// verl the model gets `no stdout here`.
    fn call(&self, arguments: &Value, _: &mut Value, timeout: Duration) -> Result<ToolOutput, ToolError> {
        let Value::Object(fields) = arguments else { return Err(ToolError::raised("the arguments must be an object")) };
        let code = fields.get("code").map_or_else(String::new, text_of);
        let limit = fields.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
        let limit = limit.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(self.timeout).min(timeout);
        let seconds = limit.as_secs_f64().ceil().max(1.0) as u64;
        let answer = self.service.run_program(&code, seconds).map_err(|failure| match failure.kind {
            RewardFailure::Timeout => ToolError { failure: ReplyFailure::Timeout, message: failure.message },
            RewardFailure::Exception | RewardFailure::Crash => ToolError::raised(failure.message),
        })?;
        if answer["status"] == "SandboxError" {
            return Err(ToolError::raised(format!("the sandbox failed: {}", text_of(&answer["message"]))));
        }
        let run = &answer["run_result"];
        let text = |field: &str| run[field].as_str().unwrap_or_default();
        let text =
            if run["status"] == "Finished" { text("stdout").to_owned() + text("stderr") } else { "no stdout here".to_owned() };
        Ok(ToolOutput { text, reward: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_server::serve;
    use super::*;

    #[test]
    fn output_and_errors_are_told() {
        let run = |status: &str, result: Value| (200, json!({"status": status, "run_result": result}).to_string());
        let (url, requests) = serve(vec![
            run("Success", json!({"status": "Finished", "stdout": "5\n", "stderr": "", "return_code": 0})),
            run("Failed", json!({"status": "Finished", "stdout": "1\n", "stderr": "Trace", "return_code": 1})),
            run("Failed", json!({"status": "TimeLimitExceeded"})),
            (200, json!({"status": "SandboxError", "message": "no room"}).to_string()),
            (400, "bad".to_owned()),
        ]);
        let tool = (SANDBOX.make)(&json!({"sandbox_fusion_url": url, "default_timeout": 7})).unwrap();
        let ask = || tool.call(&json!({"code": "print(5)"}), &mut Value::Null, Duration::from_secs(20));
        assert_eq!(ask(), Ok(ToolOutput { text: "5\n".to_owned(), reward: None }));
        assert_eq!(ask().unwrap().text, "1\nTrace");
        assert_eq!(ask().unwrap().text, "no stdout here");
        assert!(ask().unwrap_err().message.contains("no room"));
        assert!(ask().unwrap_err().message.contains("status 400"));
        let requests = requests.lock().unwrap();
        let first = &requests[0];
        assert_eq!(
            (&first["code"], &first["run_timeout"], &first["memory_limit_MB"]),
            (&json!("print(5)"), &json!(7), &json!(1024))
        );
        assert!((SANDBOX.make)(&json!({})).err().unwrap().to_string().contains("sandbox_fusion_url"));
    }
}
