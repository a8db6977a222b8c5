//! Commands of TRL and OpenRLHF, converted by the real binary, and the recipes it writes, run dry.

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
        let output = succeed(trainer(&["--config", &recipe, &here, "--dry-run"]));
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
    assert_eq!(code(&["from-trl", "trl sft --packing"]), Some(1), "something is not here");
    assert_eq!(code(&["from-trl", "trl dpo --beta 1"]), Some(2));
    assert_eq!(code(&["from-trl", "trl sft", "--output", &at("trl.yaml")]), Some(2), "the file is there");
    assert_eq!(code(&["from-trl"]), Some(2));
    assert_eq!(code(&["from-openrlhf", "python3 -m openrlhf.cli.train_rm --x 1"]), Some(2));
    assert_eq!(std::fs::read_to_string(at("trl.yaml")).unwrap(), yaml);
}
