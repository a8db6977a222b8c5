//! `trainer man`: manual pages, made of the same table as `--help`.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;

use super::error::CliError;
use super::print::print_data;
use burnish_util::fs::write_atomic;
use burnish_util::suggest::did_you_mean;

#[derive(Args)]
pub(crate) struct ManArgs {
    /// Words of the command, such as `runs ls` [default: trainer itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder, as trainer.1, trainer-runs-ls.1 and so on
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    output: Option<PathBuf>,
}

/// Prints the page of a command, or writes all pages. `root`: the whole command line.
pub(super) fn run(args: &ManArgs, mut root: Command) -> Result<(), CliError> {
    root.build();
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| CliError::Setup(format!("--output {}: {error}", folder.display())))?;
        let pages = pages(&root, "trainer");
        for (name, page) in &pages {
            write_atomic(&folder.join(format!("{name}.1")), page.as_bytes()).map_err(CliError::run)?;
        }
        return print_data(&format!("{} pages in {}\n", pages.len(), folder.display()));
    }
    let (mut command, mut name) = (&root, "trainer".to_owned());
    for word in &args.command {
        let names: Vec<&str> = command.get_subcommands().filter(|below| !below.is_hide_set()).map(Command::get_name).collect();
        let Some(below) = command.find_subcommand(word) else {
            let suggestion = did_you_mean(word, names.iter().copied());
            return Err(CliError::Setup(format!(
                "there is no command `{word}` below {name}.{suggestion} There are {}",
                names.join(", ")
            )));
        };
        name = format!("{name}-{word}");
        command = below;
    }
    print_data(&page(command, &name))
}

/// Returns the pages of a command and of those below it, with their names.
pub(super) fn pages(command: &Command, name: &str) -> Vec<(String, String)> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    let below = below.flat_map(|below| pages(below, &format!("{name}-{}", below.get_name())));
    std::iter::once((name.to_owned(), page(command, name))).chain(below).collect()
}

fn page(command: &Command, name: &str) -> String {
    let mut page = vec![];
    // Writing to memory does not fail.
    _ = Man::new(command.clone()).title(name.to_uppercase()).section("1").render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}
