//! Two examples of every command, which end its `--help` and its manual page.

use clap::Command;

/// A command and its examples. The first name is that of the program.
type Row = (&'static str, [&'static str; 2]);

const EXAMPLES: &[Row] = &[
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
    ("trainer chat", ["trainer chat checkpoints/project/grpo", "trainer chat MODEL --system 'Be brief.' --temperature 0.7"]),
    (
        "trainer serve",
        ["trainer serve --model Qwen/Qwen3-0.6B", "trainer serve --model exported --port 8080 --tool-format hermes"],
    ),
    ("trainer serve-rm", ["trainer serve-rm --model reward-model", "trainer serve-rm --model reward-model --port 5000"]),
    (
        "trainer report",
        [
            "trainer report checkpoints/project/grpo",
            "trainer report checkpoints/project/grpo checkpoints/project/rloo --output compared.html",
        ],
    ),
    ("trainer runs", ["trainer runs ls", "trainer runs show checkpoints/project/grpo"]),
    ("trainer runs ls", ["trainer runs ls", "trainer runs ls --project mine --with adv_estimator=grpo"]),
    ("trainer runs diff", ["trainer runs diff checkpoints/mine/grpo checkpoints/mine/rloo", "trainer runs diff grpo grpo-2"]),
    ("trainer runs rm", ["trainer runs rm checkpoints/mine/grpo", "trainer runs rm --yes old-1 old-2"]),
    (
        "trainer runs show",
        ["trainer runs show checkpoints/project/grpo", "trainer runs show checkpoints/project/grpo/global_step_20"],
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
    ("trainer devices", ["trainer devices", "trainer devices --help"]),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, choices};
    use burnish_config::Request;
    use burnish_config::kinds::{KINDS, named};
    use clap::CommandFactory;

    fn commands(command: &Command, path: &str) -> Vec<String> {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        let below = below.flat_map(|below| commands(below, &format!("{path} {}", below.get_name())));
        std::iter::once(path.to_owned()).chain(below).collect()
    }

    /// The words of the program in an example, without a redirection.
    fn words(example: &str) -> Vec<String> {
        let (_, line) = example.split_once("trainer").unwrap();
        let line = line.split([')', '>']).next().unwrap();
        let mut words = vec!["trainer".to_owned()];
        for (i, part) in line.split('\'').enumerate() {
            if i % 2 == 1 { words.push(part.to_owned()) } else { words.extend(part.split_whitespace().map(str::to_owned)) }
        }
        words
    }

    #[test]
    fn every_command_has_examples_that_its_parser_takes() {
        let known: Vec<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut all = commands(&Cli::command(), "trainer");
        all.sort();
        let mut sorted = known.clone();
        sorted.sort();
        assert_eq!(sorted, all, "each command has one row");
        for (name, examples) in EXAMPLES {
            for example in examples {
                let words = words(example);
                assert!(words.join(" ").starts_with(name), "{example} is not an example of {name}");
                let shows_help = words.iter().any(|word| word == "--help");
                let parsed = Cli::command().try_get_matches_from(&words);
                assert!(parsed.is_ok() || shows_help, "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    /// An example of a command with settings passes all checks of a run that need no files of the user.
    #[test]
    fn settings_of_examples_are_valid() {
        for example in EXAMPLES.iter().flat_map(|(_, examples)| examples) {
            let mut words = words(example).split_off(1);
            let known = words.first().map_or(&KINDS[0], |word| named(word).unwrap_or(&KINDS[0]));
            if words[0] != "--config" && known.name != words[0] {
                continue;
            }
            let at = words.iter().position(|word| word == "--config").unwrap();
            let config = words[at + 1].clone();
            words.retain(|word| word.contains('='));
            let request = Request { config: Some(config), overrides: words, ..Request::default() };
            known.load(&request, &choices(known.kind)).map_err(|error| format!("{example}: {error}")).unwrap();
        }
    }

    #[test]
    fn help_shows_the_examples_and_keeps_what_a_command_adds() {
        let mut root = add(Cli::command(), "trainer");
        let help = root.find_subcommand_mut("data").unwrap().render_help().to_string();
        assert!(
            help.contains("Examples:\n  trainer data gsm8k --output data/gsm8k\n") && help.contains("\nData sets:\n"),
            "{help}"
        );
    }
}
