//! Tests of what the commands say about themselves: examples, manual pages, and answers to mistyped words.

use std::ffi::OsString;

use clap::{Command, CommandFactory};

use super::command::Cli;
use super::examples::{EXAMPLES, add};
use super::json::{LISTINGS, NOT_LISTING};
use super::kinds::choices;
use super::man::pages;
use super::mistyped::{COMMANDS, FLAGS, refusal};
use burnish_config::Request;
use burnish_config::kinds::{KINDS, named};

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
    assert!(help.contains("Examples:\n  trainer data gsm8k --output data/gsm8k\n") && help.contains("\nData sets:\n"), "{help}");
}

fn refused(line: &str) -> Option<String> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    refusal(&Cli::command(), &words)
}

#[test]
fn a_flag_of_another_trainer_is_answered_with_a_setting_that_the_command_has() {
    for (names, keys) in FLAGS {
        let mut found = 0;
        for known in KINDS {
            let defaults = known.defaults().unwrap();
            let Some(key) = keys.iter().find(|key| defaults.value(key).is_some()) else { continue };
            found += 1;
            for name in *names {
                let line = format!("{} --{}=7", &known.command["trainer ".len()..], name.replace('_', "-"));
                assert_eq!(refused(&line).map(|text| text.ends_with(&format!("type {key}=7"))), Some(true), "{line}");
            }
        }
        assert!(found > 0, "no command has one of {keys:?}");
    }
}

#[test]
fn words_of_first_commands_are_answered_with_what_to_type() {
    for (line, typed) in [
        ("grpo", Some("type `trainer --config ppo_trainer.yaml algorithm.adv_estimator=grpo`")),
        ("ppo", Some("algorithm.adv_estimator=gae`")),
        ("kto", Some("type `trainer dpo --config dpo_trainer.yaml algorithm.loss_type=kto")),
        ("ppo_trainer.yaml", Some("type `trainer --config ppo_trainer.yaml`")),
        ("sft_trainer", Some("type `trainer sft --config sft_trainer`")),
        ("sft sft_trainer.yaml model.path=x", Some("type `trainer sft --config sft_trainer.yaml`")),
        ("--config ppo_trainer.yaml grpo", Some("`grpo` is not an override: type algorithm.adv_estimator=grpo")),
        ("--lr 1e-5", Some("type actor_rollout_ref.actor.optim.lr=1e-5")),
        ("sft --config sft_trainer.yaml --lr 1e-5", Some("type optim.lr=1e-5")),
        ("-m a.b=1,2", None),
        ("generate --multirun a.b=1,2", Some("only the commands that train")),
        ("dpoo", Some("Did you mean \"dpo\"?")),
        ("--config ppo_trainer.yaml a.b=1 --dry-run", None),
        ("help sft", None),
        ("from-verl @x.sh -- --lr 1", None),
        ("export RUN --output x", None),
    ] {
        let found = refused(line);
        assert_eq!(found.is_some(), typed.is_some(), "{line}: {found:?}");
        assert!(typed.is_none_or(|typed| found.as_ref().unwrap().contains(typed)), "{line}: {found:?}");
    }
}

/// A word of the table is not a command, and the command to type is one.
#[test]
fn commands_to_type_exist() {
    let root = Cli::command();
    for (names, instead) in COMMANDS {
        assert!(names.iter().all(|name| root.find_subcommand(name).is_none()), "{names:?}");
        let words: Vec<&str> = instead.split(' ').skip(1).collect();
        let is_command = words[0].starts_with("--") || root.find_subcommand(words[0]).is_some();
        assert!(is_command && refused(&words.join(" ")).is_none(), "{instead}");
    }
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let mut root = Cli::command();
    root.build();
    let pages = pages(&root, "trainer");
    for (name, option) in [("trainer", "--dry-run"), ("trainer-runs-ls", "--project"), ("trainer-serve", "--port")] {
        let (_, page) = pages.iter().find(|(known, _)| known == name).unwrap();
        assert!(page.starts_with(".ie") || page.contains(".TH"), "{page}");
        assert!(page.replace('\\', "").contains(option), "{name}");
    }
}

/// Every command that runs has one row: it lists with `--json`, or a program reads something else of it.
#[test]
fn every_command_lists_or_says_what_a_program_reads() {
    let root = Cli::command();
    let runs = |path: &str| {
        let command = path.split(' ').skip(1).fold(&root, |command, name| command.find_subcommand(name).unwrap());
        let has_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        (!command.is_subcommand_required_set()).then(|| (path.trim_start_matches("trainer").trim_start().to_owned(), has_json))
    };
    let mut all: Vec<(String, bool)> = commands(&root, "trainer").iter().filter_map(|path| runs(path)).collect();
    all.sort();
    let listings = LISTINGS.iter().map(|listing| (listing.command.to_owned(), true));
    let mut known: Vec<(String, bool)> =
        listings.chain(NOT_LISTING.iter().map(|(command, _)| ((*command).to_owned(), false))).collect();
    known.sort();
    assert_eq!(known, all);
}
