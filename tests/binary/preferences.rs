//! `trainer dpo`: one step and its effect, against TRL's trainers; micro-batches and the way to compute the reference do not
//! change it; a run resumes where it was.

use std::path::Path;

use serde_json::Value;

use crate::common::{rows, text, trainer};
use crate::golden_steps;

fn dpo(at: &Path, settings: &[String]) {
    golden_steps::run("dpo", at, settings);
}

/// The loss of a golden file, by our name.
fn loss_type(name: &str, options: &Value) -> String {
    let given = options.get("loss_type").map_or(String::new(), Value::to_string).replace('"', "");
    match name.split('_').next().unwrap() {
        "cpo" if given.is_empty() || given == "sigmoid" => "cpo".to_owned(),
        "cpo" => format!("cpo_{given}"),
        kind @ ("orpo" | "simpo" | "kto") if given.is_empty() => kind.to_owned(),
        "dpo" if given.is_empty() => "sigmoid".to_owned(),
        _ => given,
    }
}

#[test]
fn golden_steps_of_preference_optimisation() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["dpo_", "kto_", "orpo_", "cpo_", "simpo_"];
    for (name, golden) in names.iter().flat_map(|name| golden_steps::golden_steps(name)) {
        let rows = golden["rows"].as_array().unwrap().len();
        let mut settings = golden_steps::settings(&golden, &folder.path().join("rows.jsonl"), rows);
        settings.push(format!("algorithm.loss_type={}", loss_type(&name, &golden["options"])));
        let reference = golden["model"].get("reference").filter(|reference| !reference.is_null());
        settings.extend(reference.map(|name| format!("ref.model.path={}", golden_steps::model(name))));
        for (key, value) in golden["options"].as_object().unwrap().iter().filter(|(key, _)| *key != "loss_type") {
            settings.push(format!("algorithm.{key}={}", value.to_string().replace('"', "")));
        }
        let is_compared = |key: &str| key != "num_tokens" && !key.starts_with("logits/");
        let compared = |key: &str| is_compared(key).then(|| format!("train/{key}"));
        let whole = golden_steps::check("dpo", &name, &golden, &settings, folder.path(), compared);
        if golden["model"].is_object() {
            let computed = folder.path().join(format!("{name} computed"));
            dpo(&computed, &[&settings[..], &["ref.precompute_log_prob=false".to_owned()]].concat());
            assert_eq!(text(&whole), text(&computed), "{name}: stored and computed log-probabilities");
        }
    }
}

const SMALL: &[&str] = &[
    "data.train_batch_size=8",
    "data.micro_batch_size_per_gpu=3",
    "data.train_max_samples=48",
    "data.val_max_samples=16",
    "data.max_length=64",
    "trainer.save_freq=2",
    "trainer.test_freq=3",
    "optim.lr=1e-3",
    "optim.lr_scheduler_type=constant",
    "optim.lr_warmup_steps_ratio=0",
];

fn small(at: &Path, more: &[&str]) {
    dpo(at, &SMALL.iter().chain(more).map(|setting| setting.to_string()).collect::<Vec<_>>());
}

/// A run that ended after step 4 and resumes has byte-identical metrics and weights to one that never ended.
#[test]
fn a_resumed_run_of_preferences_is_the_run_itself() {
    let folder = tempfile::tempdir().unwrap();
    let forms = ["algorithm.loss_type=[sigmoid,sft]", "algorithm.loss_type=kto", "algorithm.loss_type=aot", "model.lora_rank=4"];
    for (i, form) in forms.into_iter().enumerate() {
        let [whole, resumed] = ["whole", "resumed"].map(|name| folder.path().join(format!("{name}{i}")));
        small(&whole, &[form, "trainer.total_training_steps=6"]);
        small(&resumed, &[form, "trainer.total_training_steps=4"]);
        // Without its file the reference is computed again, from the weights before the first step.
        std::fs::remove_file(resumed.join("reference_log_probs.safetensors")).unwrap();
        small(&resumed, &[form, "trainer.total_training_steps=6"]);
        let from = |at: &Path, step: u64| rows(at).into_iter().filter(|(own, _)| *own > step).collect::<Vec<_>>();
        assert_eq!(from(&whole, 4), from(&resumed, 4), "{form}");
        let bytes = |at: &Path| {
            let files = ["huggingface/model.safetensors", "lora_adapter/adapter_model.safetensors", "optim.safetensors"];
            files.map(|file| std::fs::read(at.join("global_step_6").join(file)).ok())
        };
        assert!(bytes(&whole) == bytes(&resumed) && bytes(&whole)[2].is_some(), "{form}");
        let stored = |at: &Path| std::fs::read(at.join("reference_log_probs.safetensors")).unwrap();
        assert_eq!(stored(&whole), stored(&resumed), "{form}");
    }
}

/// A file of log-probabilities is used if it fits, and refused by name if not.
#[test]
fn log_probabilities_of_a_reference_are_taken_from_a_file_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    small(&first, &["trainer.total_training_steps=2"]);
    let file = format!("ref.log_prob_path={}", first.join("reference_log_probs.safetensors").display());
    small(&second, &["trainer.total_training_steps=2", &file]);
    assert_eq!(text(&first), text(&second));
    assert!(!second.join("reference_log_probs.safetensors").exists());
    for (more, messages) in [
        (&["data.train_max_samples=40"][..], "of other training rows"),
        (&["algorithm.ld_alpha=0.5"], "of another algorithm.ld_alpha"),
        (&["model.init=random"], "of another reference model"),
        (&["model.dtype=bfloat16"], "in another number format"),
    ] {
        let mut command = trainer(&["dpo", "--config", "arithmetic/first_dpo.yaml"]);
        command.arg(format!("trainer.default_local_dir={}", folder.path().join("third").display())).args(SMALL);
        let output = command.arg(&file).args(more).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && error.contains(messages) && error.contains("ref.log_prob_path"),
            "{messages}: {error}"
        );
    }
}

/// Incompatible settings end a run before it reads any file.
#[test]
fn losses_that_do_not_go_together_are_refused() {
    for (settings, messages) in [
        (&["algorithm.loss_type=[kto,sigmoid]"][..], "cannot be combined"),
        (&["algorithm.loss_type=exo_pair"], "needs a number above 0"),
        (&["algorithm.loss_type=robust", "algorithm.label_smoothing=0.5"], "needs a number below 0.5"),
        (&["algorithm.loss_type=kto", "data.train_batch_size=1"], "another row of the batch"),
        (
            &["algorithm.loss_type=[sigmoid,sft]", "algorithm.loss_weights=[1]"],
            "1 numbers, but `algorithm.loss_type` has 2 names",
        ),
        (&["algorithm.loss_type=[sigmoid,sft]", "algorithm.loss_weights=[1,-1]"], "weights must be 0 or more"),
        (&["algorithm.loss_type=[sigmoid,sft]", "algorithm.loss_weights=[0,0]"], "at least one above 0"),
        (&["algorithm.loss_type=simpo", "algorithm.use_weighting=true"], "algorithm.use_weighting"),
        (
            &["algorithm.loss_type=nca_pair", "algorithm.f_divergence_type=forward_kl"],
            "`nca_pair` is defined for reverse_kl alone",
        ),
        (&["algorithm.loss_type=dop"], "must be one of sigmoid, dpo,"),
    ] {
        let output =
            trainer(&["dpo", "--config", "arithmetic/first_dpo.yaml", "--dry-run=plan"]).args(settings).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(messages), "{settings:?}: {error}");
    }
}
