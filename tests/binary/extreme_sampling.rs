//! Extreme values of the sampling parameters, in every place where users write them: each has its meaning, or is refused by name.

use std::fs;

use serde_json::{Value, json};

use crate::common::{of_task, small_run, succeed};
use crate::serve::Server;

/// Settings of generation and training that every run refuses.
#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let rollout = "actor_rollout_ref.rollout";
    for (key, value) in [
        ("temperature", "1e-10"),
        ("temperature", "0.001"),
        ("temperature", "1e39"),
        ("temperature", ".inf"),
        ("temperature", ".nan"),
        ("temperature", "-1"),
        ("top_p", "0"),
        ("top_p", "1.0000001"),
        ("top_k", "-2"),
        ("min_p", "-1e-9"),
        ("min_p", "1.1"),
        ("repetition_penalty", "0"),
        ("repetition_penalty", "1e-46"),
        ("repetition_penalty", "1e39"),
        ("presence_penalty", "1e39"),
        ("frequency_penalty", "-2.5"),
        ("logit_bias", "{5: 1e39}"),
        ("logit_bias", "{5: .nan}"),
        ("logit_bias", "{5: 1e6}"),
        ("logit_bias", "{99999999: 1}"),
        ("min_tokens", "100000"),
        ("min_tokens", "-1"),
        ("val_kwargs.temperature", "-1e-9"),
        ("val_kwargs.top_p", "0"),
    ] {
        let own = format!("{rollout}.{key}={value}");
        let mut runs = vec![("training", small_run(folder.path(), &[&own, "--dry-run=plan"]))];
        // A generation accepts any temperature from 0.
        let is_taken = key == "temperature" && value.parse::<f64>().is_ok_and(|t| t > 0.0 && t.is_finite());
        if !key.starts_with("val_kwargs") && !is_taken {
            let mut generate = of_task("generate");
            generate.args(["--dry-run", "data.path=data/arithmetic/test.parquet"]);
            generate.args(["model.path=data/arithmetic/model", &format!("rollout.{key}={value}")]);
            runs.push(("generation", generate));
        }
        for (label, mut run) in runs {
            let output = run.output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            let named = message.contains(&format!("rollout.{key}"));
            assert!(output.status.code() == Some(2) && named, "{label}, {key}={value}: {:?} {message}", output.status);
        }
    }
}

/// Temperatures that amount to greedy sampling give the greedy responses, in generation and validation.
#[test]
fn a_temperature_near_0_is_greedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let generated = |temperature: &str| {
        let output = file(&format!("{temperature}.parquet"));
        let mut command = of_task("generate");
        command.args([
            "data.path=data/arithmetic/test.parquet",
            "model.path=data/arithmetic/model",
            &format!("data.output_path={output}"),
            &format!("rollout.temperature={temperature}"),
            "rollout.response_length=6",
        ]);
        succeed(command);
        fs::read(&output).unwrap()
    };
    let greedy = generated("0");
    for temperature in ["1e-10", "1e-46"] {
        assert!(generated(temperature) == greedy, "{temperature}");
    }
    let validated = |temperature: &str| {
        let dumps = folder.path().join(format!("validation-{temperature}"));
        let at = format!("trainer.validation_data_dir={}", dumps.display());
        let temperature = format!("actor_rollout_ref.rollout.val_kwargs.temperature={temperature}");
        succeed(small_run(&folder.path().join("run"), &[&temperature, &at, "trainer.val_only=true"]));
        fs::read(dumps.join("0.jsonl")).unwrap()
    };
    let validated = ["1e-10", "0"].map(validated);
    assert!(!validated[0].is_empty() && validated[0] == validated[1]);
}

/// A request with an extreme value is served with its meaning, or refused with the name of the field.
#[test]
fn requests_are_answered_right_or_refused_by_name() {
    let server = Server::start(&["--token-env", "SERVE_TOKEN"]);
    let ask = |field: &str, value: Value| {
        let mut body = json!({"prompt": "12+34=", "max_tokens": 6, "seed": 3, "temperature": 0, "return_token_ids": true});
        body[field] = value;
        let (status, text) = server.ask("/completions", &body, "Bearer s3cret");
        let answer: Value = serde_json::from_str(&text).unwrap();
        (status, answer["choices"][0]["token_ids"].clone(), answer["error"]["param"].clone())
    };
    let greedy = ask("temperature", json!(0)).1;
    for (field, value) in [
        ("temperature", json!(1e-8)),
        ("temperature", json!(1e-10)),
        ("temperature", json!(1e-38)),
        ("temperature", json!(1e-300)),
        ("temperature", json!(f64::EPSILON)),
        ("min_p", json!(1)),
        ("top_k", json!(i64::MAX)),
        ("seed", json!(i64::MIN)),
    ] {
        assert_eq!(ask(field, value.clone()), (200, greedy.clone(), Value::Null), "{field}={value}");
    }
    for (field, value) in [
        ("temperature", json!(1e39)),
        ("temperature", json!(1e300)),
        ("repetition_penalty", json!(1000)),
        ("repetition_penalty", json!(0.001)),
        ("min_tokens", json!(6)),
    ] {
        let (status, ids, _) = ask(field, value.clone());
        let ids: Vec<u64> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        assert!(status == 200 && ids.iter().any(|id| *id != ids[0]), "{field}={value}: {ids:?}");
    }
    for (field, value) in [
        ("temperature", json!(-1e-300)),
        ("top_p", json!(0)),
        ("top_p", json!(1.5)),
        ("top_k", json!(-2)),
        ("min_p", json!(-1e-300)),
        ("repetition_penalty", json!(0)),
        ("repetition_penalty", json!(1e-46)),
        ("repetition_penalty", json!(1e300)),
        ("presence_penalty", json!(2.1)),
        ("frequency_penalty", json!(-1e300)),
        ("min_tokens", json!(7)),
        ("min_tokens", json!(u64::MAX)),
        ("max_tokens", json!(u64::MAX)),
        ("max_tokens", json!(0)),
        ("n", json!(u64::MAX)),
        ("seed", json!(u64::MAX)),
        ("logit_bias", json!({"5": 1e300})),
    ] {
        let (status, _, param) = ask(field, value.clone());
        assert_eq!((status, param), (400, json!(field)), "{field}={value}");
    }
}
