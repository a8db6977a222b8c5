//! The page of a report in a browser: it draws curves, shows samples, and makes no network requests.
//!
//! Without `chromium` on the PATH only the content of the page is checked; `BURNISH_REQUIRE_CHROMIUM=1` makes that a failure.

use std::path::{Path, PathBuf};
use std::process::Command;

use burnish::report::gather::Gather;
use burnish::report::page::page;
use burnish::run::{BestSoFar, RecordedSetting, RunInfo, RunState};
use serde_json::{Value, json};

/// A run of 40 steps with validations, samples, settings, a metric that is sometimes not finite, and texts that look like HTML.
fn write_run(dir: &Path, experiment: &str, rate: f64) {
    std::fs::create_dir_all(dir).unwrap();
    let lines = |values: Vec<Value>| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    let row = |step: u64| {
        let learnt = 1.0 - (-(step as f64) * rate).exp();
        let mut data = json!({
            "critic/score/mean": learnt, "critic/rewards/mean": learnt - 0.01, "actor/entropy": 2.0 - learnt, "actor/ppo_kl": 0.01 * learnt,
            "actor/pg_clipfrac": 0.02, "actor/grad_norm": if step == 7 { json!("NaN") } else { json!(0.5) },
            "response_length/mean": 20.0 + step as f64, "perf/throughput": 900.0, "timing_s/gen": 1.5, "timing_s/update_actor": 0.5,
            "timing_s/step": 2.1, "actor/rewards/accuracies": learnt, "actor/logps/chosen": -10.0 - 8.0 * learnt,
            "actor/logps/rejected": -11.0 - 20.0 * learnt,
        });
        if step.is_multiple_of(10) {
            data["val-core/arithmetic/acc/mean@1"] = json!(learnt);
        }
        json!({"step": step, "data": data})
    };
    std::fs::write(dir.join("metrics.jsonl"), lines((1..=40).map(row).collect())).unwrap();
    let sample = |i: u64| {
        json!({"step": 1 + i / 4 * 13, "kind": if i.is_multiple_of(4) { "val" } else { "train" }, "prompt": "3 + 4 = <b>", "response": format!("{i}</script>\n"),
            "score": 1.0, "advantage": 0.5, "ground_truth": "7", "data_source": "arithmetic", "components": {"exact": 1.0},
            "finish": "stop", "tokens": [i.to_string(), "</script>", "\n"], "log_probs": [-0.1, -2.0, -0.5], "advantages": [0.5, 0.5, -0.5]})
    };
    // The last samples are conversations, in which a tool wrote the second token.
    let conversation = |mut sample: Value| {
        let call = json!({"type": "function", "function": {"name": "add <b>", "arguments": {"a": 3, "b": 4}}});
        sample["messages"] = json!([{"role": "user", "content": "3 + 4 = <b>"}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "</script> 7"}, {"role": "assistant", "content": "It is 7."}]);
        (sample["asked"], sample["end"], sample["num_turns"], sample["sampled"]) =
            (json!(1), json!("answer"), json!(4), json!([1, 0, 1]));
        sample
    };
    let samples = (0..16).map(|i| if i < 12 { sample(i) } else { conversation(sample(i)) });
    std::fs::write(dir.join("samples.jsonl"), lines(samples.collect())).unwrap();
    let info = RunInfo {
        state: RunState::Finished,
        step: 40,
        total_steps: 40,
        ended: Some(1.8e9),
        metrics: dir.join("metrics.jsonl"),
        best: Some(BestSoFar { metric: "val-core/arithmetic/acc/mean@1".into(), value: 0.9, step: 40 }),
        config: vec![RecordedSetting {
            key: "actor_rollout_ref.actor.optim.lr".into(),
            value: json!(rate),
            from: "command line".into(),
        }],
        ..RunInfo::new("ppo", "arithmetic", experiment)
    };
    info.write(dir).unwrap();
}

/// Writes the page of these runs, and returns its data as the browser gets it.
fn write_page(dirs: &[PathBuf], file: &Path) -> Value {
    let html = page(&Gather::new(dirs.to_vec()).data(false).unwrap(), false);
    std::fs::write(file, &html).unwrap();
    let (_, data) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn every_number_is_in_the_page_and_a_browser_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let runs = [("grpo", 0.1), ("rloo <i>", 0.05)].map(|(name, rate)| {
        let run = dir.path().join(name.split(' ').next().unwrap());
        write_run(&run, name, rate);
        run
    });
    let [one, two] = ["one.html", "two.html"].map(|file| dir.path().join(file));
    write_page(&runs[..1], &one);
    let data = write_page(&runs, &two);
    for (run, dir) in data["runs"].as_array().unwrap().iter().zip(&runs) {
        let steps = run["metrics"]["steps"].as_array().unwrap();
        for line in std::fs::read_to_string(dir.join("metrics.jsonl")).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let at = steps.iter().position(|step| *step == row["step"]).unwrap();
            for (name, value) in row["data"].as_object().unwrap() {
                let shown = &run["metrics"]["series"][name][at];
                let is_near = || (shown.as_f64().unwrap() / value.as_f64().unwrap() - 1.0).abs() <= 5e-6;
                assert!(if value.is_number() { is_near() } else { shown == value }, "{name}: {shown} for {value}");
            }
        }
        assert_eq!(run["samples"].as_array().unwrap().len(), 16);
    }
    in_browser(&one, &two);
}

#[expect(clippy::print_stderr, reason = "the test reports a check that it leaves out")]
fn in_browser(one: &Path, two: &Path) {
    let chromium = Command::new("chromium").arg("--version").output();
    if !chromium.is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("BURNISH_REQUIRE_CHROMIUM").is_none(),
            "BURNISH_REQUIRE_CHROMIUM is set, and chromium is not installed"
        );
        eprintln!("chromium is not installed: the page is not checked in a browser");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/check/report_browser.py");
    let output = Command::new("python3").arg(&script).arg("check").args([one, two]).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{out}{err}");
}
