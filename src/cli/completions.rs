//! `trainer completions SHELL`, and the hidden `trainer complete WORD…` that its scripts call for candidates: subcommands and
//! flags from clap's own table, overrides from the built-in configurations.

use clap::{Arg, Args, Command, ValueEnum};

use super::error::CliError;
use super::kinds::choices;
use super::print::print_data;
use burnish_config::Request;
use burnish_config::complete::{complete, complete_key};
use burnish_config::kinds::{ConfigKind, KINDS, infer, named};

#[derive(Args)]
pub(crate) struct CompletionsArgs {
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
pub(crate) struct CompleteArgs {
    /// The words after `trainer`; the last one is to be completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Prints the completion script for a shell: `source <(trainer completions bash)`.
pub(super) fn script(args: &CompletionsArgs) -> Result<(), CliError> {
    print_data(match args.shell {
        Shell::Bash => include_str!("completions/trainer.bash"),
        Shell::Zsh => include_str!("completions/trainer.zsh"),
        Shell::Fish => include_str!("completions/trainer.fish"),
    })
}

/// Prints the completions of the last word, one per line; `root` is the whole command line.
pub(super) fn run(args: &CompleteArgs, root: &Command) -> Result<(), CliError> {
    let (prefix, before) = args.words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let candidates = candidates(&Before::read(root, before), prefix)?;
    print_data(&candidates.iter().map(|candidate| format!("{candidate}\n")).collect::<String>())
}

/// The meaning of the words before the one to complete.
struct Before<'a> {
    command: &'a Command,
    /// The flags with their values.
    flags: Vec<(&'a str, &'a str)>,
    positionals: usize,
    /// The flag whose value comes next.
    open: Option<&'a Arg>,
}

impl<'a> Before<'a> {
    fn read(root: &'a Command, words: &'a [String]) -> Self {
        let mut before = Self { command: root, flags: vec![], positionals: 0, open: None };
        for word in words {
            if let Some(option) = before.open.take() {
                before.flags.extend(option.get_long().map(|flag| (flag, word.as_str())));
            } else if let Some(flag) = word.strip_prefix("--") {
                match flag.split_once('=') {
                    Some(with_value) => before.flags.push(with_value),
                    None => before.open = before.command.get_opts().find(|option| option.get_long() == Some(flag)),
                }
            } else if let Some(command) = before.command.find_subcommand(word).filter(|_| before.positionals == 0) {
                before.command = command;
            } else {
                before.positionals += 1;
            }
        }
        before
    }

    fn flag(&self, name: &str) -> Option<&'a str> {
        self.flags.iter().rfind(|(flag, _)| *flag == name).map(|(_, value)| *value)
    }

    /// The kind of configuration whose keys are completed: given by `--for`, else by the subcommand, else by `--config`.
    fn kind(&self) -> &'static ConfigKind {
        // A chat has the settings of a generation.
        let name = self.command.get_name();
        let chosen = self.flag("for").and_then(named).or_else(|| named(if name == "chat" { "generate" } else { name }));
        let config = self.flag("config").map(str::to_owned);
        chosen.or_else(|| infer(&Request { config, ..Request::default() }).ok()).unwrap_or(&KINDS[0])
    }
}

fn candidates(before: &Before, prefix: &str) -> Result<Vec<String>, CliError> {
    let command = before.command;
    let names = |arg: &Arg| -> Vec<String> {
        let names = arg.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
        names.filter(|name| name.starts_with(prefix)).collect()
    };
    if let Some(option) = before.open {
        return Ok(names(option));
    }
    if prefix.starts_with('-') {
        let flags = command.get_arguments().filter_map(|argument| argument.get_long()).chain(["help"]);
        return Ok(flags.map(|flag| format!("--{flag}")).filter(|flag| flag.starts_with(prefix)).collect());
    }
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name().to_owned());
    let mut found: Vec<String> = subcommands.filter(|name| name.starts_with(prefix)).collect();
    // The last positional argument takes all further words.
    let Some(positional) = command.get_positionals().take(before.positionals + 1).last() else { return Ok(found) };
    found.extend(match positional.get_id().as_str() {
        "key" => complete_key(before.kind(), prefix)?,
        "overrides" => {
            let known = before.kind();
            complete(known, &choices(known.kind), prefix)?
        }
        _ => names(positional),
    });
    Ok(found)
}
