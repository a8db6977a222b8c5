//! The schemas of functions and tool classes, and the text of a function tool's return value, compared with transformers and
//! verl.

use std::fs;
use std::time::Duration;

use burnish::agent::session::{Functions, Host, SessionOptions, Setup};
use serde_json::{Value, json};

use crate::cases::golden_file;

/// The schemas of a host's tools, or the error.
fn schemas(setup: &Setup) -> Result<Vec<Value>, String> {
    let host = Host::start(setup, SessionOptions::default()).map_err(|error| format!("{error:#}"))?;
    Ok(host.offers().tools.iter().map(|tool| tool.schema.clone()).collect())
}

/// Compares schemas byte by byte, so the order of keys counts; or the name of the exception.
fn check(name: &str, found: Result<Vec<Value>, String>, expected: &Value) {
    match (expected["raises"].as_str(), found) {
        (Some(raises), Err(error)) => assert!(error.contains(raises), "{name}: {error}"),
        (None, Ok(found)) => assert_eq!(json!(found).to_string(), json!([expected]).to_string(), "{name}"),
        (_, found) => panic!("{name}: {found:?} instead of {expected}"),
    }
}

#[test]
fn golden_schemas_of_functions() {
    let golden = golden_file("agents/function_schemas.json");
    let folder = tempfile::tempdir().unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (name, source) = (case["name"].as_str().unwrap(), case["source"].as_str().unwrap());
        let file = |text: String| {
            let path = folder.path().join(format!("my_{name}.py"));
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let functions = vec![Functions { path: file(source.to_owned()), names: vec![name.to_owned()] }];
        check(name, schemas(&Setup { functions, ..Setup::default() }), &case["transformers"]);
        let path = file(format!("{source}\nfrom verl.tools.function_tool import function_tool\nfunction_tool({name})\n"));
        check(name, schemas(&Setup { function_tools: Some(path), narrow_schemas: true, ..Setup::default() }), &case["verl"]);
    }
}

/// A class for every name in the tool configurations, in packages that can be imported from a folder on PYTHONPATH.
#[test]
fn golden_schemas_of_tool_configurations() {
    let golden = golden_file("agents/function_schemas.json");
    for case in golden["tool_configs"].as_array().unwrap() {
        let config: Value = serde_yaml::from_str(case["yaml"].as_str().unwrap()).unwrap();
        for (tool, expected) in config["tools"].as_array().unwrap().iter().zip(case["schemas"].as_array().unwrap()) {
            let mut tool = tool.clone();
            tool["class_name"] = json!("verl.tools.base_tool.BaseTool");
            let setup = Setup { verl_tools: vec![tool.clone()], narrow_schemas: true, ..Setup::default() };
            check("narrow", schemas(&setup), expected);
            if expected["raises"].is_null() {
                check("whole", schemas(&Setup { narrow_schemas: false, ..setup }), &tool["tool_schema"]);
            }
        }
    }
}

#[test]
fn golden_return_values_of_function_tools() {
    let golden = golden_file("agents/function_schemas.json");
    let cases = golden["returns"].as_array().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my_returns.py");
    let function = |(index, case): (usize, &Value)| {
        format!("@function_tool\ndef f{index}():\n    \"\"\"Returns.\"\"\"\n    return {}\n", case["python"].as_str().unwrap())
    };
    let functions: String = cases.iter().enumerate().map(function).collect();
    fs::write(&path, format!("from verl.tools.function_tool import function_tool\n{functions}")).unwrap();
    let setup = Setup { function_tools: Some(path.to_str().unwrap().to_owned()), ..Setup::default() };
    let session = Host::start(&setup, SessionOptions::default()).unwrap().session();
    for (index, case) in cases.iter().enumerate() {
        let calls = json!([{ "name": format!("f{index}"), "arguments": "{}" }]);
        let arguments = json!({ "calls": calls, "seen": {}, "tools_kwargs": {}, "request_id": "r" });
        let reply = session.ask("call", &arguments, Duration::from_secs(20)).unwrap().unwrap();
        let answer = &reply["answers"][0];
        if case["raises"].is_null() {
            let found = json!([answer["text"], answer["reward"], answer["metrics"]]);
            assert_eq!(found, json!([case["text"], case["reward"], case["metrics"]]), "{}", case["python"]);
        } else {
            assert_eq!(answer["raised"], case["raises"], "{}", case["python"]);
        }
    }
}
