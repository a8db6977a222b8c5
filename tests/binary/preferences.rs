//! `trainer dpo`: one step and its effect, against TRL's trainers; no cut and no way to have a reference changes it; a run goes on
//! where it was.

use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use crate::common::{rows, succeed, text, trainer};

fn goldens() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from)
}

fn dpo(at: &Path, settings: &[String]) {
    let mut command = trainer(&["dpo", "--config", "dpo_trainer.yaml"]);
    command.arg(format!("trainer.default_local_dir={}", at.display())).arg("trainer.logger=[file]").args(settings);
    succeed(command);
}

fn near(what: &str, ours: Option<&Value>, theirs: &Value, tolerance: f64) {
    let ours = ours.unwrap_or_else(|| panic!("{what} is not reported")).as_f64().unwrap();
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1e-3), "{what}: {ours}, theirs {theirs}");
}

/// Σ |x| of every tensor of a saved model.
fn abs_sums(folder: &Path) -> Map<String, Value> {
    let bytes = std::fs::read(folder.join("huggingface/model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let sum =
        |data: &[u8]| data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])).abs()).sum::<f64>();
    tensors.iter().map(|(name, view)| (name.to_owned(), json!(sum(view.data())))).collect()
}

/// The loss that a golden file is of, in our names.
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

/// The settings of a step of the goldens.
fn golden_settings(name: &str, golden: &Value, data: &Path) -> Vec<String> {
    let (root, rows) = (goldens(), golden["rows"].as_array().unwrap());
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(data, lines).unwrap();
    let (model, trainer) = (&golden["model"], &golden["trainer"]);
    let folder = |name: &Value| root.join("models").join(name.as_str().unwrap()).display().to_string();
    let [one, two] = [0, 1].map(|i| trainer["betas"][i].as_f64().unwrap());
    let mut settings = vec![
        format!("model.path={}", folder(model.get("policy").unwrap_or(model))),
        format!("model.tokenizer_path={}", root.join("offline").join(golden["tokenizer"].as_str().unwrap()).display()),
        format!("data.train_files={}", data.display()),
        "data.val_files=null".to_owned(),
        "data.shuffle=false".to_owned(),
        "data.max_length=64".to_owned(),
        format!("data.train_batch_size={}", rows.len()),
        format!("data.micro_batch_size_per_gpu={}", rows.len()),
        "trainer.total_training_steps=2".to_owned(),
        "trainer.save_freq=1".to_owned(),
        "optim.lr_scheduler_type=constant".to_owned(),
        "optim.lr_warmup_steps_ratio=0".to_owned(),
        format!("optim.lr={}", trainer["learning_rate"]),
        format!("optim.betas=[{one},{two}]"),
        format!("optim.eps={}", trainer["eps"]),
        format!("optim.weight_decay={}", trainer["weight_decay"]),
        format!("optim.clip_grad={}", trainer["max_grad_norm"]),
        format!("algorithm.loss_type={}", loss_type(name, &golden["options"])),
    ];
    settings
        .extend(model.get("reference").filter(|reference| !reference.is_null()).map(|r| format!("ref.model.path={}", folder(r))));
    for (key, value) in golden["options"].as_object().unwrap().iter().filter(|(key, _)| *key != "loss_type") {
        settings.push(format!("algorithm.{key}={}", value.to_string().replace('"', "")));
    }
    settings
}

#[test]
fn golden_steps_of_preference_optimisation() {
    let folder = tempfile::tempdir().unwrap();
    let files = std::fs::read_dir(goldens().join("offline/e2e")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let ours = |path: &PathBuf| ["dpo", "kto", "orpo", "cpo", "simpo"].contains(&name(path).split('_').next().unwrap());
    let mut files: Vec<PathBuf> = files.filter(|path| path.is_file() && ours(path)).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let golden: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let name = name(&file);
        let settings = golden_settings(&name, &golden, &folder.path().join("rows.jsonl"));
        let check = |cut: &str, more: &[&str]| {
            let at = folder.path().join(format!("{name} {cut}"));
            let all: Vec<String> = settings.iter().cloned().chain(more.iter().map(|setting| setting.to_string())).collect();
            dpo(&at, &all);
            let (name, steps) = (format!("{name}, {cut}"), rows(&at));
            let number = |step: usize, key: &str| steps[step].1.get(key);
            near(&format!("{name}, loss"), number(0, "train/loss"), &golden["loss"], 1e-5);
            near(&format!("{name}, gradient"), number(0, "train/grad_norm"), &golden["grad_norm"], 1e-5);
            near(&format!("{name}, loss after"), number(1, "train/loss"), &golden["loss_after_step"], 1e-4);
            for (key, want) in golden["metrics"].as_object().unwrap() {
                if key != "num_tokens" && key != "mean_token_accuracy" && !key.starts_with("logits/") {
                    near(&format!("{name}, {key}"), number(0, &format!("train/{key}")), want, 1e-5);
                }
            }
            at
        };
        let whole = check("whole", &[]);
        let sums = abs_sums(&whole.join("global_step_1"));
        for (tensor, want) in golden["param_abs_sum_after_step"].as_object().unwrap() {
            near(&format!("{name}, {tensor}"), sums.get(tensor), want, 2e-4);
        }
        for rows in ["1", "2"] {
            check(rows, &[&format!("data.micro_batch_size_per_gpu={rows}")]);
        }
        check(
            "tokens",
            &["data.use_dynamic_bsz=true", "data.max_token_len_per_gpu=64", "model.enable_gradient_checkpointing=true"],
        );
        if golden["model"].is_object() {
            let computed = check("computed", &["ref.precompute_log_prob=false"]);
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

/// A run that ended after step 4 and goes on has the numbers and the weights of one that never ended, to the byte.
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

/// A file of log-probabilities is used where it fits, and refused by name where it does not.
#[test]
fn log_probabilities_of_a_reference_are_taken_from_a_file_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    small(&first, &["trainer.total_training_steps=2"]);
    let file = format!("ref.log_prob_path={}", first.join("reference_log_probs.safetensors").display());
    small(&second, &["trainer.total_training_steps=2", &file]);
    assert_eq!(text(&first), text(&second));
    assert!(!second.join("reference_log_probs.safetensors").exists());
    for (more, said) in [
        (&["data.train_max_samples=40"][..], "of other training rows"),
        (&["algorithm.ld_alpha=0.5"], "of another algorithm.ld_alpha"),
        (&["model.init=random"], "of another reference model"),
        (&["model.dtype=bfloat16"], "in another number format"),
    ] {
        let mut command = trainer(&["dpo", "--config", "dpo_trainer.yaml"]);
        command.arg(format!("trainer.default_local_dir={}", folder.path().join("third").display())).args(SMALL);
        let output = command.arg(&file).args(more).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && error.contains(said) && error.contains("ref.log_prob_path"),
            "{said}: {error}"
        );
    }
}

/// Settings that do not go together end a run before anything is read.
#[test]
fn losses_that_do_not_go_together_are_refused() {
    for (settings, said) in [
        (&["algorithm.loss_type=[kto,sigmoid]"][..], "stands alone"),
        (&["algorithm.loss_type=exo_pair"], "needs a number above 0"),
        (&["algorithm.loss_type=robust", "algorithm.label_smoothing=0.5"], "needs a number below 0.5"),
        (&["algorithm.loss_type=kto", "data.train_batch_size=1"], "another row of the batch"),
        (&["algorithm.loss_type=[sigmoid,sft]", "algorithm.loss_weights=[1]"], "1 numbers, and `algorithm.loss_type` 2 names"),
        (&["algorithm.loss_type=simpo", "algorithm.use_weighting=true"], "algorithm.use_weighting"),
        (
            &["algorithm.loss_type=nca_pair", "algorithm.f_divergence_type=forward_kl"],
            "`nca_pair` is defined for reverse_kl alone",
        ),
        (&["algorithm.loss_type=dop"], "must be one of sigmoid, dpo,"),
    ] {
        let output = trainer(&["dpo", "--config", "dpo_trainer.yaml", "--dry-run"]).args(settings).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(said), "{settings:?}: {error}");
    }
}
