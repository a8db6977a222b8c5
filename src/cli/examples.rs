//! Two examples of every command, which end its `--help` and its manual page.

use clap::Command;

/// A command and its examples. The first word is the name of the program.
pub(super) type Row = (&'static str, [&'static str; 2]);

pub(super) const EXAMPLES: &[Row] = &[
    (
        "trainer",
        [
            "trainer --config ppo_trainer.yaml algorithm.adv_estimator=rloo",
            "trainer --config ppo_trainer.yaml actor_rollout_ref.model.path=MODEL data.train_files=rows.parquet --dry-run",
        ],
    ),
    (
        "trainer run",
        [
            "trainer run @run_qwen.sh trainer.total_training_steps=2",
            "trainer run 'trl dpo --model_name_or_path MODEL --dataset_name pairs.jsonl' --dry-run",
        ],
    ),
    (
        "trainer init",
        ["trainer init grpo --model Qwen/Qwen3-0.6B --data rows.jsonl --output mine.yaml", "trainer init arithmetic/dapo"],
    ),
    ("trainer recipes", ["trainer recipes", "trainer recipes arithmetic/dapo"]),
    (
        "trainer sft",
        [
            "trainer sft --config sft_trainer.yaml model.path=MODEL data.train_files=talks.jsonl data.messages_key=messages",
            "trainer sft --config recipes/arithmetic/sft.yaml",
        ],
    ),
    (
        "trainer rm",
        [
            "trainer rm --config rm_trainer.yaml model.path=MODEL data.train_files=pairs.jsonl",
            "trainer rm --config recipes/arithmetic/prm.yaml",
        ],
    ),
    (
        "trainer dpo",
        [
            "trainer dpo --config dpo_trainer.yaml model.path=MODEL data.train_files=pairs.jsonl",
            "trainer dpo --config dpo_trainer.yaml algorithm.loss_type=ipo algorithm.beta=0.05 --dry-run",
        ],
    ),
    (
        "trainer distill",
        [
            "trainer distill --config distill_trainer.yaml model.path=SMALL teacher.path=LARGE data.train_files=talks.jsonl",
            "trainer distill --config recipes/arithmetic/distill.yaml",
        ],
    ),
    (
        "trainer generate",
        [
            "trainer generate --config generation.yaml model.path=MODEL data.path=prompts.parquet",
            "trainer generate --config generation.yaml rollout.temperature=0 data.output_path=answers.parquet",
        ],
    ),
    (
        "trainer eval",
        [
            "trainer eval --config evaluation.yaml data.path=answers.parquet",
            "trainer eval --config evaluation.yaml data.path=answers.parquet custom_reward_function.path=reward.py",
        ],
    ),
    ("trainer reward", ["trainer reward check reward.py --data train.parquet", "trainer reward check --help"]),
    (
        "trainer reward check",
        [
            "trainer reward check reward.py:compute_score --data train.parquet",
            "trainer reward check gsm8k --rows answers.jsonl data.response_key=response data.label_key=answer",
        ],
    ),
    ("trainer chat", ["trainer chat checkpoints/project/grpo", "trainer chat MODEL --system 'Be brief.' --temperature 0.7"]),
    (
        "trainer serve",
        ["trainer serve --model Qwen/Qwen3-0.6B", "trainer serve --model exported --port 8080 --tool-format hermes"],
    ),
    ("trainer serve-rm", ["trainer serve-rm --model reward-model", "trainer serve-rm --model reward-model --port 5000"]),
    (
        "trainer report",
        ["trainer report checkpoints/project/grpo", "trainer report checkpoints/project/grpo-sweep --table sweep.csv"],
    ),
    ("trainer runs", ["trainer runs ls", "trainer runs show checkpoints/project/grpo"]),
    ("trainer runs ls", ["trainer runs ls", "trainer runs ls --project mine --with adv_estimator=grpo"]),
    ("trainer runs diff", ["trainer runs diff checkpoints/mine/grpo checkpoints/mine/rloo", "trainer runs diff grpo grpo-2"]),
    ("trainer runs rm", ["trainer runs rm checkpoints/mine/grpo", "trainer runs rm --yes old-1 old-2"]),
    (
        "trainer runs samples",
        ["trainer runs samples checkpoints/project/grpo --flipped", "trainer runs samples checkpoints/project/grpo --prompt 17"],
    ),
    (
        "trainer runs show",
        ["trainer runs show checkpoints/project/grpo", "trainer runs show checkpoints/project/grpo/global_step_20"],
    ),
    (
        "trainer doctor",
        ["trainer doctor checkpoints/project/grpo", "trainer doctor ppo_trainer.yaml data.max_response_length=32"],
    ),
    (
        "trainer replay",
        [
            "trainer replay checkpoints/project/grpo --step 40",
            "trainer replay checkpoints/project/grpo --step 40 --set actor_rollout_ref.actor.optim.lr=1e-6 --until 45",
        ],
    ),
    (
        "trainer bisect",
        [
            "trainer bisect checkpoints/project/grpo --metric actor/entropy --bad '<0.1'",
            "trainer bisect checkpoints/project/grpo --metric val-core/gsm8k/acc/mean@1 --bad '<0.2'",
        ],
    ),
    ("trainer data", ["trainer data gsm8k --output data/gsm8k", "trainer data gsm8k --input downloaded --output data/gsm8k"]),
    (
        "trainer data select",
        [
            "trainer data select best --input scored.parquet --output best.parquet",
            "trainer data select pairs --input scored.parquet --output pairs.parquet --min-margin 0.5",
        ],
    ),
    (
        "trainer export",
        [
            "trainer export checkpoints/project/grpo/global_step_20 --output exported",
            "trainer export checkpoints/project/grpo --best --output exported --dtype bfloat16",
        ],
    ),
    ("trainer fetch", ["trainer fetch Qwen/Qwen3-0.6B", "trainer fetch hf://datasets/openai/gsm8k"]),
    (
        "trainer from-verl",
        [
            "trainer from-verl @run_qwen.sh --output recipe.yaml",
            "trainer from-verl 'python3 -m verl.trainer.main_ppo data.train_batch_size=64'",
        ],
    ),
    ("trainer from-trl", ["trainer from-trl @grpo.sh --output recipe.yaml", "trainer from-trl @grpo.yaml --algo grpo"]),
    (
        "trainer from-openrlhf",
        [
            "trainer from-openrlhf @train_ppo.sh --output recipe.yaml",
            "trainer from-openrlhf @train_sft.sh DATA=talks.jsonl --edition 0.9.10",
        ],
    ),
    ("trainer config", ["trainer config show --config ppo_trainer.yaml", "trainer config explain trainer.save_freq"]),
    (
        "trainer config show",
        [
            "trainer config show --config ppo_trainer.yaml algorithm.adv_estimator=grpo",
            "trainer config show --config sft_trainer.yaml --sources",
        ],
    ),
    ("trainer config explain", ["trainer config explain algorithm.adv_estimator", "trainer config explain kl"]),
    (
        "trainer config diff",
        [
            "trainer config diff ppo_trainer recipes/arithmetic/dapo.yaml",
            "trainer config diff ppo_trainer 'ppo_trainer algorithm.adv_estimator=grpo'",
        ],
    ),
    ("trainer config schema", ["trainer config schema sft > sft_trainer.json", "trainer config schema --output .vscode/schemas"]),
    ("trainer devices", ["trainer devices", "trainer devices --json"]),
    ("trainer self-check", ["trainer self-check", "trainer self-check --folder /data/runs --python .venv/bin/python"]),
    ("trainer man", ["trainer man runs ls", "trainer man --output man1"]),
    ("trainer completions", ["source <(trainer completions bash)", "trainer completions fish > trainer.fish"]),
];

/// Adds the examples to a command and to all commands below it. `path`: the name of the command, after those above it.
pub(super) fn add(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let added = match EXAMPLES.iter().find(|(name, _)| *name == path) {
        Some((_, examples)) => {
            let further = command.get_after_help().map(|text| format!("\n\n{text}")).unwrap_or_default();
            let shown = format!("Examples:\n  {}{further}", examples.join("\n  "));
            command.after_help(shown)
        }
        None => command,
    };
    names.into_iter().fold(added, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |below| add(below, &path))
    })
}
