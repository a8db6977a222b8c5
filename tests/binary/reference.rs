//! A reference model that differs from the policy.

use std::path::Path;

use burn::tensor::Device;
use burnish::data::Tokenizer;
use burnish::model::{CausalLm, Init, Sequence};
use serde_json::Value;

use crate::common::{copy, rows, small_run, succeed, text};

const KL: [&str; 4] = [
    "actor_rollout_ref.actor.use_kl_loss=true",
    "trainer.total_training_steps=2",
    "trainer.val_before_train=false",
    "trainer.test_freq=-1",
];

fn with_reference(path: &Path) -> String {
    format!("actor_rollout_ref.ref.model.path={}", path.display())
}

/// `objective/kl` is the mean over responses of Σ (log π − log π_ref), computed here from the recorded responses.
#[test]
fn another_model_is_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let first = ["trainer.total_training_steps=1", "actor_rollout_ref.actor.optim.lr=0.003", "trainer.save_freq=1"];
    succeed(small_run(&at("first"), &[&first[..], &["trainer.val_before_train=false", "trainer.test_freq=-1"]].concat()));
    let other = at("first").join("global_step_1/actor/huggingface");

    let shown = ["trainer.metric_names=trl", "trainer.log_completions=32", "trainer.num_sample_generations=2"];
    succeed(small_run(&at("measured"), &[&KL[..], &shown, &[&with_reference(&other)]].concat()));
    let (tokenizer, model) =
        (Tokenizer::load(&other).unwrap(), CausalLm::load(&other, Init::Pretrained, &Device::flex()).unwrap());
    let samples = std::fs::read_to_string(at("measured").join("samples.jsonl")).unwrap();
    let of_first_step = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["step"] == 1;
    let differences: Vec<f64> = samples
        .lines()
        .filter(of_first_step)
        .map(|line| {
            let sample: Value = serde_json::from_str(line).unwrap();
            let pieces = sample["tokens"].as_array().unwrap().iter().map(|piece| piece.as_str().unwrap());
            let prompt = tokenizer.encode(sample["prompt"].as_str().unwrap()).unwrap();
            let response = tokenizer.encode(&pieces.collect::<String>()).unwrap();
            let own: f64 = sample["log_probs"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
            let theirs = model.token_stats(&[Sequence::new(&prompt, &response)], 1.0, None).log_prob;
            own - theirs.iter().map(|x| f64::from(*x)).sum::<f64>()
        })
        .collect();
    assert_eq!(differences.len(), 32);
    let expected = differences.iter().sum::<f64>() / 32.0;
    let kl = rows(&at("measured"))[0].1["objective/kl"].as_f64().unwrap();
    assert!(kl.abs() > 1e-3 && (kl - expected).abs() < 1e-4, "{kl} for {expected}");

    let same = with_reference(Path::new("data/arithmetic/model"));
    succeed(small_run(&at("plain"), &KL));
    succeed(small_run(&at("same"), &[&KL[..], &[&same]].concat()));
    assert_eq!(text(&at("plain")), text(&at("same")));

    copy(&other, &at("swapped"));
    let (file, swapped) = (at("swapped").join("tokenizer.json"), [("\"1\"", "\"@\""), ("\"2\"", "\"1\""), ("\"@\"", "\"2\"")]);
    let json = swapped.iter().fold(std::fs::read_to_string(&file).unwrap(), |json, (from, to)| json.replace(from, to));
    std::fs::write(&file, json).unwrap();
    let sync = "actor_rollout_ref.ref.sync_ref_model=true";
    for (path, more, expected) in [
        (at("swapped"), KL[1], "its tokenizer differs from the run's tokenizer: token 5 is \"1\""),
        ("tests/golden/models/qwen2".into(), KL[1], "its vocabulary has 256 tokens, the policy's 20"),
        (other, sync, "starts as the policy"),
    ] {
        let mut command = small_run(&at("refused"), &[&KL[..], &[&with_reference(&path), more, "--dry-run=plan"]].concat());
        let output = command.output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && messages.contains(expected), "{expected}: {messages}");
    }
}
