//! Golden runs: the metrics and weights of short runs, to the last bit. Only a change that is meant to change values may change
//! them.
//!
//! A case is a file `runs/NAME.jsonl` under `$BURNISH_GOLDENS`. Its first line has the `arguments` of the program, with `{out}`
//! for a fresh folder, and the kind of `processor` that recorded it. The rows of metrics.jsonl follow, without metrics of time
//! and memory, and then the CRC-32 of the files with weights and responses. `scripts/golden-runs` records them again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burnish::util::crc::IEEE;
use burnish::util::fs::files_under;
use serde_json::{Map, Value, json};

use crate::common::{rows, succeed, trainer};

/// The kind of kernels on this processor: kernels for AVX-512, for AVX2 and for neither round differently (docs/numerics.md).
fn processor() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return "avx512";
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            return "avx2";
        }
    }
    std::env::consts::ARCH
}

fn folder() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or_else(own, PathBuf::from).join("runs")
}

/// Runs the program, and returns its rows and the checksums of the files that hold weights or responses.
fn run(arguments: &[String]) -> Vec<Value> {
    let out = tempfile::tempdir().unwrap();
    let place = out.path().to_str().unwrap();
    let arguments: Vec<String> = arguments.iter().map(|argument| argument.replace("{out}", place)).collect();
    succeed(trainer(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    let mut lines = Vec::new();
    if out.path().join("metrics.jsonl").exists() {
        lines.extend(rows(out.path()).into_iter().map(|(step, data)| json!({"step": step, "data": data})));
    }
    let is_result = |path: &&PathBuf| {
        path.extension().is_some_and(|kind| kind == "safetensors" || kind == "parquet") || path.starts_with("rollouts")
    };
    let files = files_under(out.path()).unwrap();
    let crc = |path: &PathBuf| format!("{:08x}", IEEE.checksum(&std::fs::read(out.path().join(path)).unwrap()));
    let files: BTreeMap<String, String> =
        files.iter().filter(is_result).map(|path| (path.display().to_string(), crc(path))).collect();
    lines.push(json!({"crc32": files}));
    lines
}

/// Returns the first metric of two rows with a larger difference than another processor's kernels explain. Those kernels sum in
/// another order, which changes a log-probability by about 1e-6. The sampled tokens stay the same unless a draw falls that close
/// to a boundary. Only the first row is compared in this way, because an optimizer that divides by the root of a second moment
/// can enlarge such a difference without limit.
fn first_other(now: &Map<String, Value>, recorded: &Map<String, Value>) -> Option<String> {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-3 * a.abs().max(b.abs()) + 1e-5;
    let differs = |key: &&String| match (now.get(*key).and_then(Value::as_f64), recorded[*key].as_f64()) {
        (Some(now), Some(recorded)) => !close(now, recorded),
        (now, recorded) => now.is_some() != recorded.is_some(),
    };
    recorded.keys().find(differs).cloned()
}

#[test]
fn golden_runs_report_and_write_what_they_did() {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|kind| kind == "jsonl"));
    cases.sort();
    assert!(!cases.is_empty(), "no golden runs in {}", folder().display());
    for path in cases {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut recorded: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let head = recorded.remove(0);
        let arguments: Vec<String> = serde_json::from_value(head["arguments"].clone()).unwrap();
        let now = run(&arguments);
        if std::env::var_os("BURNISH_RECORD_RUNS").is_some() {
            let head = json!({"arguments": arguments, "processor": processor()});
            let lines: String = std::iter::once(&head).chain(&now).map(|line| format!("{line}\n")).collect();
            std::fs::write(&path, lines).unwrap();
        } else if head["processor"] == processor() {
            for (line, (now, recorded)) in now.iter().zip(&recorded).enumerate() {
                assert!(now == recorded, "{}, line {}:\n{now}\ninstead of\n{recorded}", path.display(), line + 2);
            }
            assert_eq!(now.len(), recorded.len(), "{}", path.display());
        } else if let (Some(now), Some(recorded)) = (now[0]["data"].as_object(), recorded[0]["data"].as_object()) {
            let other = first_other(now, recorded);
            assert_eq!(other, None, "{}: {now:?}\ninstead of\n{recorded:?}", path.display());
        }
    }
}
