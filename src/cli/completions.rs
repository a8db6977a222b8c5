//! `trainer completions SHELL`, and the hidden `trainer complete WORD…` that its scripts call for every candidate: subcommands
//! and flags from clap's own table, overrides from the built-in configurations.

use clap::{Args, Command, CommandFactory, ValueEnum};

use super::kinds::with_choices;
use super::{Cli, Failure, print};
use crate::config::Request;
use crate::config::complete::complete;
use crate::config::kinds::{KINDS, Known, infer, named};

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args)]
pub struct CompleteArgs {
    /// The words after `trainer`, the last being the one to complete
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Prints the script that a shell reads: `source <(trainer completions bash)`.
pub fn script(args: &CompletionsArgs) -> Result<(), Failure> {
    print(match args.shell {
        Shell::Bash => include_str!("completions/trainer.bash"),
        Shell::Zsh => include_str!("completions/trainer.zsh"),
        Shell::Fish => include_str!("completions/trainer.fish"),
    })
}

/// Prints what the last word may become, one candidate per line.
pub fn run(args: &CompleteArgs) -> Result<(), Failure> {
    let (begun, before) = args.words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let root = Cli::command();
    let command = before.iter().fold(&root, |command, word| command.find_subcommand(word).unwrap_or(command));
    let candidates = candidates(command, before, begun)?;
    print(&candidates.iter().map(|candidate| format!("{candidate}\n")).collect::<String>())
}

fn candidates(command: &Command, before: &[String], begun: &str) -> Result<Vec<String>, Failure> {
    let flag = before.last().and_then(|word| word.strip_prefix("--"));
    if let Some(value) = command.get_opts().find(|option| option.get_long().is_some_and(|long| flag == Some(long))) {
        let names = value.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
        return Ok(names.filter(|name| name.starts_with(begun)).collect());
    }
    if begun.starts_with('-') {
        let flags = command.get_arguments().filter_map(|argument| argument.get_long()).chain(["help"]);
        return Ok(flags.map(|flag| format!("--{flag}")).filter(|flag| flag.starts_with(begun)).collect());
    }
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name().to_owned());
    let mut found: Vec<String> = subcommands.filter(|name| name.starts_with(begun)).collect();
    let mut positionals = command.get_positionals();
    if let Some(choice) = positionals.next().filter(|positional| !positional.get_possible_values().is_empty()) {
        let values = choice.get_possible_values();
        found.extend(values.iter().map(|value| value.get_name().to_owned()).filter(|name| name.starts_with(begun)));
    }
    if command.get_positionals().any(|positional| positional.get_id() == "overrides") {
        let known = kind(command, before);
        found.extend(with_choices(known.kind, |choices| complete(known, choices, begun))?);
    }
    Ok(found)
}

/// The kind of configuration whose keys are completed: that of `--for`, of the subcommand, or of `--config`.
fn kind(command: &Command, before: &[String]) -> &'static Known {
    let after = |flag: &str| before.iter().skip_while(|word| *word != flag).nth(1).cloned();
    let chosen = after("--for").as_deref().and_then(named).or_else(|| named(command.get_name()));
    let config = after("--config");
    chosen.or_else(|| infer(&Request { config, ..Request::default() }).ok()).unwrap_or(&KINDS[0])
}
