//! Commands of verl, TRL and OpenRLHF, converted by the real binary, and dry runs of the recipes.

use crate::common::{succeed, trainer};

const TRL: &str = "accelerate launch --num_processes 2 trl/scripts/grpo.py --model_name_or_path data/arithmetic/model \
    --dataset_name data/arithmetic --reward_model_name_or_path data/arithmetic/reward_model --num_generations 4 \
    --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --max_completion_length 8 --eval_strategy steps --eval_steps 8 \
    --max_steps 16 --use_peft --use_vllm";
const ORIGINAL: &str = "python examples/scripts/rloo/rloo.py --dataset_name data/arithmetic --sft_model_path data/arithmetic/model \
    --model_name_or_path data/arithmetic/model --reward_model_path data/arithmetic/reward_model --response_length 8 --rloo_k 4 \
    --per_device_train_batch_size 8 --total_episodes 64";
const OPENRLHF: &str = "ray job submit --address=http://127.0.0.1:8265 -- python3 -m openrlhf.cli.train_ppo_ray \
    --pretrain data/arithmetic/model --reward_pretrain data/arithmetic/reward_model --prompt_data data/arithmetic --input_key prompt \
    --prompt_max_len 16 --generate_max_len 8 --rollout_batch_size 16 --train_batch_size 8 --freezing_actor_steps 2 --bf16";

#[test]
fn recipes_of_other_libraries_commands_run() {
    let folder = tempfile::tempdir().unwrap();
    for (index, (command, line)) in
        [("from-trl", TRL), ("from-trl", ORIGINAL), ("from-openrlhf", OPENRLHF)].into_iter().enumerate()
    {
        let recipe = folder.path().join(format!("{index}.yaml")).display().to_string();
        let output = succeed(trainer(&[command, line, "--output", &recipe]));
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("trainer --config {recipe}\n"));
        let here = format!("trainer.default_local_dir={}", folder.path().join("run").display());
        let output = succeed(trainer(&["--config", &recipe, &here, "--dry-run=plan"]));
        let plan = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(plan.contains("6144 prompts"), "{plan}");
    }
}

#[test]
fn conversions_say_what_is_not_here_by_their_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let code = |args: &[&str]| trainer(args).output().unwrap().status.code();
    let yaml = "model_name_or_path: data/arithmetic/model\ndataset_name: data/arithmetic\nlearning_rate: 1e-5\nenv: {A: b}\n";
    std::fs::write(at("trl.yaml"), yaml).unwrap();
    std::fs::write(at("deep.yaml"), "a: [".repeat(200_000)).unwrap();
    let (file, deep) = (format!("@{}", at("trl.yaml")), format!("@{}", at("deep.yaml")));
    let words = ["from-trl", "--", "trl", "sft", "--config", &at("trl.yaml"), "--num_train_epochs", "2"];
    let output = succeed(trainer(&words));
    let recipe = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(recipe.contains("lr: 1e-5") && recipe.contains("total_epochs: 2"), "{recipe}");
    assert_eq!(code(&["from-trl", &file, "--algo", "sft"]), Some(0));
    assert_eq!(code(&["from-trl", &file]), Some(2), "the stage is not known");
    assert_eq!(code(&["from-trl", &deep, "--algo", "sft"]), Some(2));
    assert_eq!(code(&["from-trl", "trl sft --fp16"]), Some(1), "something is not here");
    assert_eq!(code(&["from-trl", "trl bco --beta 1"]), Some(2));
    assert_eq!(code(&["from-trl", "trl sft", "--output", &at("trl.yaml")]), Some(2), "the file is there");
    assert_eq!(code(&["from-trl"]), Some(2));
    assert_eq!(code(&["from-openrlhf", "python3 -m openrlhf.cli.train_nothing --x 1"]), Some(2));
    assert_eq!(std::fs::read_to_string(at("trl.yaml")).unwrap(), yaml);
    assert_eq!(code(&["from-trl", "trl sft", "--", "--packing"]), Some(2), "two commands");
}

#[test]
fn scripts_of_other_libraries_are_read_without_running_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let script = "set -x\nMODEL=${MODEL:?a model}\nWORDS=(openrlhf.cli.train_sft --max_epochs $1 --pretrain \"$MODEL\")\n\
        ARGS=(--train_batch_size $((4 * 4)) --dataset data/arithmetic --output_key answer --seed $(pick_a_seed))\n\
        touch RAN\ndeepspeed --module \"${WORDS[@]}\" \"${ARGS[@]}\" $EXTRA\n";
    std::fs::write(at("sft.sh"), script).unwrap();
    let file = format!("@{}", at("sft.sh"));
    // The end token has another position, so the exit code is 1.
    let output = trainer(&["from-openrlhf", &file, "MODEL=data/arithmetic/model", "--", "3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let (recipe, messages) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for line in ["path: data/arithmetic/model  #", "train_batch_size: 16  #", "total_epochs: 3  #", "seed: 42  # default"] {
        assert!(recipe.contains(line), "{line}\n{recipe}");
    }
    assert!(messages.contains("--seed of line") && messages.contains("pick_a_seed"), "{messages}");
    assert!(!folder.path().join("RAN").exists());
}

/// A script of verl becomes a recipe that passes a dry run; unsupported settings are commented out, with exit code 1.
#[test]
fn recipes_of_verls_scripts_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let script = "set -eu\nfiles=(data.train_files=data/arithmetic/train.parquet data.val_files=data/arithmetic/test.parquet)\n\
        small() { echo $(( $1 / 2 )); }\nrun=(torchrun -m \"verl.trainer.${PROGRAM:-main_ppo}\")\n\
        \"${run[@]}\" \"${files[@]}\" algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=${N:?how many} \\\n\
        actor_rollout_ref.model.path=data/arithmetic/model data.train_batch_size=16 data.max_prompt_length=16 \\\n\
        actor_rollout_ref.actor.ppo_mini_batch_size=$(small 16) actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \\\n\
        actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 data.max_response_length=8 trainer.device=cpu \\\n\
        trainer.logger=console trainer.default_local_dir=\"$1\" \"${@:2}\"\n";
    std::fs::write(at("run.sh"), script).unwrap();
    let (file, out) = (format!("@{}", at("run.sh")), at("out"));
    let convert = |recipe: &str, further: &[&str]| {
        let args = [&["from-verl", &file, "N=4", "--output", recipe, "--", &out], further].concat();
        let output = trainer(&args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (whole, part) = (at("whole.yaml"), at("part.yaml"));
    assert_eq!(convert(&whole, &[]).0, Some(0));
    let (code, errors) =
        convert(&part, &["actor_rollout_ref.hybrid_engine=False", "trainer.total_epochs=1.5", "+data.nothing=1"]);
    assert!(code == Some(1) && errors.contains("3 parts of the command") && !errors.contains("would end at once"), "{errors}");
    let text = std::fs::read_to_string(&part).unwrap();
    for line in ["hybrid_engine=false", "trainer.total_epochs=1.5", "data.nothing=1"] {
        assert!(text.lines().any(|commented| commented.starts_with("#   ") && commented.contains(line)), "{line}: {text}");
    }
    for recipe in [&whole, &part] {
        let output = succeed(trainer(&["--config", recipe, "--dry-run=plan"]));
        assert!(String::from_utf8_lossy(&output.stdout).contains("6144 prompts"));
    }
    // An error asks for a required argument or variable of the script.
    let output = trainer(&["from-verl", &file]).output().unwrap();
    let recipe = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        recipe.contains(
            "'n': ${oc.decode:${oc.env:ACTOR_ROLLOUT_REF_ROLLOUT_N}}  # set me: the script asks for `${N}`: how many (line 5)"
        ),
        "{recipe}"
    );
    let open = at("open.yaml");
    std::fs::write(&open, &recipe).unwrap();
    let dry_run = |n: Option<&str>| {
        let mut run = trainer(&["--config", &open, "--dry-run=plan"]);
        let output =
            run.env("TRAINER_DEFAULT_LOCAL_DIR", &out).envs(n.map(|n| ("ACTOR_ROLLOUT_REF_ROLLOUT_N", n))).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, refused) = dry_run(None);
    assert!(code == Some(2) && refused.contains("ACTOR_ROLLOUT_REF_ROLLOUT_N") && refused.contains("set me"), "{refused}");
    let (code, planned) = dry_run(Some("4"));
    assert!(code == Some(0) && planned.contains("× 4 samples"), "{planned}");
    assert!(
        recipe.contains("default_local_dir: ${oc.env:TRAINER_DEFAULT_LOCAL_DIR}  # set me: argument 1 is not given (line 9)"),
        "{recipe}"
    );
    // Among several commands, the one on the given line.
    let two = ["1", "2"].map(|epochs| format!("python3 -m verl.trainer.main_ppo trainer.total_epochs={epochs}\n")).concat();
    std::fs::write(at("two.sh"), two).unwrap();
    for (line, code, part) in
        [("2", 1, "total_epochs: 2"), ("3", 2, "two.sh:3: no program starts on this line; programs start on 1, 2")]
    {
        let output = trainer(&["from-verl", &format!("@{}", at("two.sh")), "--line", line]).output().unwrap();
        let messages = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.code() == Some(code) && messages.contains(part), "{messages}");
    }
}

/// Forms of scripts that users launch: lines of `#%` in each contain the expected conversion, the exit code, and texts of the
/// recipe and of the messages.
#[test]
fn launching_scripts_convert_as_they_say() {
    let mut scripts: Vec<_> = std::fs::read_dir("tests/data/launching").unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(scripts.len() > 5);
    for path in scripts {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("#% "));
        let words: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let script = format!("@{}", path.display());
        let output = trainer(&[&words[..1], &[script.as_str()], &words[1..]].concat()).output().unwrap();
        let [recipe, messages] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        for line in lines {
            let (kind, expected) = line.split_once(' ').unwrap();
            let holds = match kind {
                "code" => output.status.code().map(|code| code.to_string()).as_deref() == Some(expected),
                "recipe" => recipe.lines().any(|line| line.trim().starts_with(expected)),
                "said" => messages.contains(expected),
                kind => panic!("{script}: `{kind}`"),
            };
            assert!(holds, "{script}: {line}\n{recipe}\n{messages}");
        }
    }
}
