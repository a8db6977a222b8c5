//! Inspection without a run: `config show | explain | diff`, `--dry-run`, completion, and exit codes.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::common::{succeed, trainer};
use crate::mistakes::{MISTAKES, TASK};

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn output_of(args: &[&str]) -> String {
    stdout(&succeed(trainer(args)))
}

#[test]
fn show_prints_one_tree_in_every_format() {
    let with = |options: &[&str]| {
        output_of(&[&["config", "show", "--config", "recipes/gsm8k/grpo.yaml", "data.seed=7"], options].concat())
    };
    let (yaml, sourced) = (with(&[]), with(&["--sources"]));
    let json: Value = serde_json::from_str(&with(&["--format", "json"])).unwrap();
    let parsed = |text: &str| serde_yaml::from_str::<Value>(text).unwrap();
    assert_eq!(parsed(&yaml), json);
    assert_eq!(parsed(&sourced), json, "comments changed a value");
    for line in [
        "  seed: 7  # override data.seed=7",
        "  adv_estimator: grpo  # recipes/gsm8k/grpo.yaml:",
        "  train_batch_size: 1024  # recipes/gsm8k/rloo.yaml:",
    ] {
        assert!(sourced.contains(line), "{line}\n{sourced}");
    }
    let with_sources: Value = serde_json::from_str(&with(&["--format", "json", "--sources"])).unwrap();
    assert_eq!(with_sources["data"]["seed"], json!({ "value": 7, "source": "override data.seed=7" }));

    let untyped = ["config", "show", "--untyped", "--format", "json", "+a=inf", "+b=-inf", "+c=nan", "+d=[1e400,'x']"];
    let untyped: Value = serde_json::from_str(&output_of(&untyped)).unwrap();
    assert_eq!([&untyped["a"], &untyped["b"], &untyped["c"]], ["Infinity", "-Infinity", "NaN"]);
}

#[test]
fn explain_names_value_meaning_default_and_every_place_that_set_it() {
    let text = output_of(&[
        "config",
        "explain",
        "algorithm.adv_estimator",
        "--config",
        "recipes/gsm8k/grpo.yaml",
        "algorithm.adv_estimator=rloo",
    ]);
    assert!(text.starts_with("algorithm.adv_estimator = rloo\nAdvantage estimator.\n"), "{text}");
    let places: Vec<usize> = [
        "config/algorithm/default.yaml:",
        "recipes/gsm8k/rloo.yaml:",
        "recipes/gsm8k/grpo.yaml:",
        "override algorithm.adv_estimator=rloo",
    ]
    .iter()
    .map(|place| text.find(place).unwrap_or_else(|| panic!("{place} is missing:\n{text}")))
    .collect();
    assert!(places.is_sorted(), "{text}");
    assert!(text.contains("reinforce_plus_plus"), "{text}");

    let follows = output_of(&["config", "explain", "actor_rollout_ref.rollout.prompt_length", "data.max_prompt_length=9"]);
    assert!(
        follows.contains(" = 9\n")
            && follows.contains("${data.max_prompt_length}")
            && follows.contains("override data.max_prompt_length=9"),
        "{follows}"
    );

    let sft = output_of(&["config", "explain", "--config", "recipes/arithmetic/sft.yaml", "optim.lr"]);
    assert!(
        sft.contains("number >= 0") && sft.starts_with("optim.lr = 0.003\n") && sft.contains("recipes/arithmetic/sft.yaml:"),
        "{sft}"
    );

    // Outside the folder with ./config, all defaults are built in. The file of a group is merged before the one that chooses it.
    let folder = tempfile::tempdir().unwrap();
    let lines_of = |arguments: &[&str]| -> Vec<String> {
        let mut command = trainer(&[&["config", "explain", "optim.lr"], arguments].concat());
        command.current_dir(&folder);
        stdout(&succeed(command)).lines().map(str::to_owned).collect()
    };
    let lines = lines_of(&["--for", "sft"]);
    assert_eq!(lines[0], "optim.lr = 1e-5");
    let is_default = |line: &str| line.starts_with("  default  2e-5 ") && line.contains("config/sft_trainer.yaml:");
    let is_task = |line: &str| line.starts_with("  then     1e-5 ") && line.contains("recipes/arithmetic/first_sft.yaml:");
    let [.., default, last] = &lines[..] else { panic!("{lines:?}") };
    assert!(is_default(default) && is_task(last), "{lines:?}");
    std::fs::write(folder.path().join("early.yaml"), "defaults: [_self_, sft_trainer]\noptim: {lr: 0.5}\n").unwrap();
    let lines = lines_of(&["--config", "early.yaml", "optim.lr=0.25"]);
    assert_eq!(lines[0], "optim.lr = 0.25");
    assert!(lines.iter().any(|line| is_default(line)) && lines[lines.len() - 1].ends_with("override optim.lr=0.25"), "{lines:?}");

    let ignored = output_of(&["config", "explain", "actor_rollout_ref.actor.fsdp_config.param_offload"]);
    assert!(ignored.contains("ignored") && ignored.contains("optimizer state is sharded over the ranks"), "{ignored}");

    let unknown = trainer(&["config", "explain", "algorithm.adv_estimatr"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean `algorithm.adv_estimator`?"));
    for key in ["", "trainer.", ".trainer", "trainer..device"] {
        let output = trainer(&["config", "explain", key]).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "`{key}`");
        assert!(stderr(&output).starts_with(&format!("error: `{key}` is not a key")), "{}", stderr(&output));
    }
}

#[test]
fn what_has_no_effect_is_said_wherever_it_is_read() {
    let (old, new) = ("actor_rollout_ref.actor.ppo_micro_batch_size", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu");
    let (ignored, renamed) = ("actor_rollout_ref.rollout.tensor_model_parallel_size=4", format!("{old}=8"));
    let notes = |args: &[&str]| {
        let output = trainer(&[&["config"], args].concat()).output().unwrap();
        assert!(!stdout(&output).is_empty(), "{args:?}\n{}", stderr(&output));
        // Only one of the commands has the line about the recipe of the built-in task.
        stderr(&output).lines().filter(|line| !line.contains("no model or data named")).map(|line| format!("{line}\n")).collect()
    };
    let shown: String = notes(&["show", ignored, &renamed]);
    for part in
        ["WARN these settings are ignored\n", &format!("  {ignored}: "), &format!("WARN `{old}` is an old name: write `{new}` (")]
    {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert_eq!(notes(&["explain", "data.seed", ignored, &renamed]), shown);
    assert_eq!(notes(&["diff", "ppo_trainer", &format!("ppo_trainer {ignored} {renamed}")]), shown);
    assert_eq!(notes(&["show", "data.seed=7"]), "");
}

#[test]
fn diff_compares_like_diff() {
    let differing = trainer(&[
        "config",
        "diff",
        "recipes/gsm8k/rloo.yaml",
        "recipes/gsm8k/rloo.yaml data.seed=7 'trainer.logger=[console, file]' +data.apply_chat_template_kwargs.x=1",
    ]);
    let output = { differing }.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = stdout(&output);
    let seed = "data.seed\n  - 42   built-in config/data/legacy_data.yaml";
    assert!(text.contains("override data.seed=7") && text.contains("data.apply_chat_template_kwargs"), "{text}");
    assert!(text.contains(seed) || text.contains(&seed.replace("built-in ", "")), "{text}");
    assert!(!text.contains("\ntrainer.logger"), "equal lists do not differ:\n{text}");

    let of_another = trainer(&["--config", "recipes/arithmetic/sft.yaml"]).output().unwrap();
    let message = String::from_utf8_lossy(&of_another.stderr);
    assert!(message.matches("error:").count() == 1 && message.contains("trainer sft"), "{message}");

    // verl's defaults select a critic, which a run refuses.
    let refused = trainer(&["config", "diff", "ppo_trainer", "verl/2026-01/ppo_trainer"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let estimator = stdout(&refused).split("\nalgorithm.adv_estimator\n").nth(1).map(str::to_owned).unwrap_or_default();
    assert!(estimator.lines().nth(1).is_some_and(|line| line.starts_with("  + gae ")), "{}", stdout(&refused));
    let unresolved = trainer(&["config", "diff", "ppo_trainer", "ppo_trainer data.seed=${no.such}"]).output().unwrap();
    assert_eq!(unresolved.status.code(), Some(2));
    assert!(stderr(&unresolved).contains("no.such"), "{}", stderr(&unresolved));

    let same = trainer(&["config", "diff", "ppo_trainer data.seed=42", "ppo_trainer.yaml"]).output().unwrap();
    assert_eq!((same.status.code(), stdout(&same)), (Some(0), String::new()));
    let wrong = trainer(&["config", "diff", "ppo_trainer", "/no/such_file.yaml"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let looked = "looked for /no/such_file.yaml, and the built-in files (distill_trainer, dpo_trainer, evaluation, generation, ppo_trainer, rm_trainer, sft_trainer, verl/";
    assert!(stderr(&wrong).contains(looked), "{}", stderr(&wrong));
}

/// Small enough for a test, but large enough that the estimate is more than overhead.
const MEASURED: &[&str] = &[
    "trainer.total_training_steps=2",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
    "trainer.logger=[file]",
    "algorithm.use_kl_in_reward=true",
];

#[test]
fn a_dry_run_plans_writes_nothing_and_foresees_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let at = format!("trainer.default_local_dir={}", run.display());
    let report = output_of(&[MEASURED, &[&at, "--dry-run=plan"]].concat());
    assert!(!run.exists(), "a dry run made a folder");
    for part in [
        "2, 96 per epoch",
        "6144 prompts",
        "512 prompts",
        "64 prompts × 8 samples = 512 trajectories",
        "KV cache",
        "reference model",
        "optimizer state",
    ] {
        assert!(report.contains(part), "{part} is missing:\n{report}");
    }
    let peak = report.lines().find(|line| line.contains("peak")).unwrap().split_whitespace().nth(1).unwrap();
    succeed(trainer(&[MEASURED, &[&at]].concat()));
    let rows = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let row: Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
    let measured = row["data"]["perf/max_memory_allocated_gb"].as_f64().unwrap();
    let ratio = peak.parse::<f64>().unwrap() / measured;
    assert!((0.7..1.5).contains(&ratio), "estimated {peak} GiB, measured {measured} GiB");

    let sft = folder.path().join("sft");
    let sft_at = format!("trainer.default_local_dir={}", sft.display());
    let report = output_of(&["sft", "--dry-run=plan", "--config", "recipes/arithmetic/sft.yaml", &sft_at]);
    assert!(report.contains("300, 24 per epoch, 12.500 epochs") && report.contains("activations"), "{report}");
    assert!(!sft.exists());

    let responses = folder.path().join("responses.parquet");
    let output = format!("data.output_path={}", responses.display());
    let generation = [
        "generate",
        "--dry-run",
        "--config",
        "arithmetic/first_generate.yaml",
        "data.path=data/arithmetic/test.parquet",
        &output,
    ];
    let report = output_of(&generation);
    assert!(report.contains("512 from data/arithmetic/test.parquet") && report.contains("KV cache"), "{report}");
    assert!(!responses.exists() && !report.contains("activations"), "{report}");
}

#[test]
fn a_dry_run_finds_what_a_run_would() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("trainer.default_local_dir={}", folder.path().join("run").display());
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for dir in [file.clone(), file.join("run")] {
        let at = format!("trainer.default_local_dir={}", dir.display());
        let output = trainer(&[at.as_str(), "--dry-run=plan"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("trainer.default_local_dir: cannot create"), "{}", stderr(&output));
    }
    for (label, arguments, _) in MISTAKES {
        let task: &[&str] = if arguments.contains(&"--config") { &[] } else { &TASK };
        let run = trainer(&[arguments, task, &[at.as_str()][..]].concat()).output().unwrap();
        let dry = trainer(&[arguments, task, &[at.as_str(), "--dry-run=plan"][..]].concat()).output().unwrap();
        // A mistake of the command line ends with its usage, which differs.
        let message = |output: &Output| String::from_utf8_lossy(&output.stderr).split("\n\nUsage:").next().map(str::to_owned);
        assert_eq!((dry.status.code(), message(&dry)), (run.status.code(), message(&run)), "{label}");
    }
}

#[test]
fn words_are_completed() {
    let complete =
        |words: &[&str]| output_of(&[&["complete", "--"], words].concat()).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(complete(&["algorithm.adv_e"]), ["algorithm.adv_estimator="]);
    assert_eq!(
        complete(&["algorithm.adv_estimator=rei"]),
        ["reinforce_plus_plus", "reinforce_plus_plus_baseline", "reinforce", "reinforce_baseline"]
            .map(|name| format!("algorithm.adv_estimator={name}"))
    );
    assert_eq!(complete(&["actor_rollout_ref.ro"]), ["actor_rollout_ref.rollout."]);
    assert_eq!(complete(&["++trainer.dev"]), ["++trainer.device="]);
    assert_eq!(complete(&["~trainer.dev"]), ["~trainer.device"]);
    assert_eq!(complete(&["+data.apply"]), ["+data.apply_chat_template_kwargs."]);
    assert_eq!(complete(&["data.shuffle="]), ["data.shuffle=true", "data.shuffle=false"]);
    assert_eq!(complete(&["sft", "data.max_l"]), ["data.max_length="]);
    assert_eq!(complete(&["--config", "recipes/arithmetic/sft.yaml", "data.max_l"]), ["data.max_length="]);
    assert!(complete(&["data.max_l"]).is_empty());
    assert_eq!(complete(&["--config=recipes/arithmetic/sft.yaml", "data.max_l"]), ["data.max_length="]);
    assert_eq!(complete(&["trainer.logg"]), ["trainer.logger="], "items of a list are not keys");
    assert!(complete(&["trainer.logger."]).is_empty());
    assert_eq!(complete(&["config", "explain", "trainer.logg"]), ["trainer.logger"]);
    assert_eq!(complete(&["config", "explain", "data.apply"]), ["data.apply_chat_template", "data.apply_chat_template_kwargs"]);
    assert_eq!(complete(&["config", "explain", "--for", "sft", "data.max_l"]), ["data.max_length"]);
    assert_eq!(complete(&["config", "explain", "trainer.logger", "data.see"]), ["data.seed="]);
    // The value of a flag is not taken for a subcommand.
    assert_eq!(complete(&["--config", "sft", "algorithm.adv_e"]), ["algorithm.adv_estimator="]);
    assert_eq!(complete(&["config", "ex"]), ["explain"]);
    assert_eq!(complete(&["config", "show", "--for", "s"]), ["sft"]);
    assert_eq!(complete(&["config", "show", "--so"]), ["--sources"]);
    assert_eq!(complete(&["completions", "b"]), ["bash"]);
}

/// Runs the completion script in a real bash, whose readline splits words at `=`.
#[test]
fn bash_completes() {
    let script = r#"
        source <("$TRAINER" completions bash)
        try() { COMP_LINE=$1; COMP_POINT=${#1}; COMPREPLY=(); _trainer; echo "${COMPREPLY[*]}"; }
        compopt() { :; }
        try "$TRAINER algorithm.adv_estimator=grou"
        try "$TRAINER --config recipes/arithmetic/sft.yaml data.max_l"
        try "$TRAINER conf"
        try "$TRAINER trainer.device=cuda:"
        try "$TRAINER data.shuffle=true data."
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script]).env("TRAINER", env!("CARGO_BIN_EXE_trainer")).current_dir(env!("CARGO_MANIFEST_DIR"));
    let text = stdout(&succeed(bash));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..4], ["group_norm", "data.max_length=", "config", ""], "{text}");
    assert!(lines[4].contains("data.train_batch_size="), "{text}");
}

#[test]
fn wrong_input_is_2_and_a_failure_while_running_is_1() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let code = |args: &[&str]| trainer(args).output().unwrap().status.code();
    assert_eq!(code(&["data", "gsm", "--output", &at("a")]), Some(2));
    assert_eq!(code(&["data", "gsm8k", "--output", &at("a"), "--input", "no/such/folder"]), Some(2));
    assert_eq!(code(&["data", "arithmetic", "--output", &at("a"), "train=many"]), Some(2));
    std::fs::write(folder.path().join("file"), "").unwrap();
    let below_a_file = at("file/b");
    assert_eq!(code(&["data", "arithmetic", "--output", &below_a_file, "train=4", "test=4"]), Some(2));
    // No user can create a folder there.
    assert_eq!(code(&["data", "arithmetic", "--output", "/sys/burnish", "train=4", "test=4"]), Some(1));
    assert_eq!(code(&["export", "no/such/global_step_1", "--output", &at("c")]), Some(2));
    assert!(!Path::new(&at("a")).exists() && !Path::new(&at("c")).exists());
}

#[test]
fn a_word_that_is_no_command_is_one_error_with_the_one_meant() {
    for (args, meant) in [
        (&["reprot", "x"][..], Some("report")),
        (&["reprot", "x", "--watch"], Some("report")),
        (&["evl", "--config", "evaluation.yaml"], Some("eval")),
        (&["rnus", "ls"], Some("runs")),
        (&["from_verl", "x"], Some("from-verl")),
        (&["something", "data.seed=1"], None),
        (&["algorithm.gamma"], None),
    ] {
        let output = trainer(args).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        let expected = format!("error: there is no command `{}`.", args[0]);
        assert!(
            message.starts_with(&expected)
                && message.contains("sft, rm, dpo, distill, generate, eval")
                && message.lines().count() == 1,
            "{message}"
        );
        assert_eq!(message.contains("Did you mean"), meant.is_some(), "{message}");
        assert!(message.contains(&format!("\"{}\"", meant.unwrap_or(""))) || meant.is_none(), "{message}");
    }
    for args in [&["help"][..], &["help", "runs"], &["--help"], &["complete", "--", "conf"]] {
        succeed(trainer(args));
    }
}

#[test]
fn the_folder_of_a_run_in_place_of_a_checkpoint_is_answered_with_its_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    for step in [2, 10] {
        let checkpoint = run.join(format!("global_step_{step}"));
        std::fs::create_dir_all(checkpoint.join("actor/huggingface")).unwrap();
        let manifest = json!({"burnish": "0", "step": step, "sequence": step, "files": []});
        std::fs::write(checkpoint.join("manifest.json"), manifest.to_string()).unwrap();
    }
    std::fs::write(run.join("latest_checkpointed_iteration.txt"), "10").unwrap();
    std::fs::write(run.join("best_checkpointed_iteration.txt"), "2").unwrap();
    let message = |args: &[String]| {
        let output = trainer(&args.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let at = |path: &str| run.join(path).display().to_string();
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<String>>();
    let from = format!("trainer.resume_from_path={}", at(""));
    let there = format!("trainer.default_local_dir={}", folder.path().join("other").display());
    let message_of_resume = message(&words(&["trainer.resume_mode=resume_path", &from, &there]));
    let expected = format!("its checkpoints are {} (the latest), {} (the best)", at("global_step_10"), at("global_step_2"));
    assert!(message_of_resume.contains("is the folder of a run") && message_of_resume.contains(&expected), "{message_of_resume}");
    // Nothing is written into a checkpoint, through any path.
    std::os::unix::fs::symlink(at("global_step_2"), folder.path().join("link")).unwrap();
    for output in [at("global_step_2/sub"), at("global_step_2/actor/x/y"), folder.path().join("link/sub").display().to_string()] {
        for command in [&["export", &at("global_step_2")][..], &["report", &at("")]] {
            let message = message(&words(&[command, &["--output", &output]].concat()));
            assert!(message.contains("--output: ") && message.contains("is in the checkpoint"), "{message}");
        }
    }
    assert!(!run.join("global_step_2/sub").exists() && !run.join("global_step_2/actor/x").exists());
}

/// Runs on a terminal, which `script` creates.
#[cfg(target_os = "linux")]
#[test]
fn colours_are_left_out_for_whoever_says_so() {
    let warned = "\"$TRAINER\" config show actor_rollout_ref.rollout.tensor_model_parallel_size=4 >/dev/null";
    let refused = "\"$TRAINER\" runs";
    for command in [warned, refused] {
        let coloured = |name: &str, value: &str| {
            let mut script = Command::new("script");
            script.args(["-qec", command, "/dev/null"]).env("TRAINER", env!("CARGO_BIN_EXE_trainer"));
            // If CI is set, clap treats any terminal as one with colours.
            for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "RUST_LOG", "CI"] {
                script.env_remove(name);
            }
            let messages = script.env("TERM", "xterm").env(name, value).output().unwrap().stdout;
            assert!(!messages.is_empty(), "{command}");
            String::from_utf8_lossy(&messages).contains("\u{1b}[")
        };
        let seen = [("UNRELATED", "1"), ("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")]
            .map(|(name, value)| coloured(name, value));
        assert_eq!(seen, [true, false, false, false], "{command}");
    }
}
