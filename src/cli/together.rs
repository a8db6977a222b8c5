//! Commands that train: in one process, or in several that a launcher started.

use std::path::Path;

use anyhow::Error;

use super::args::ConfigArgs;
use super::failure::Failure;
use crate::job::run_folder;
use burnish_config::Loaded;
use burnish_config::schema::Schema;
use burnish_distributed::{Ranks, launched_rank, launcher, open};
use burnish_util::crc::IEEE;
use burnish_util::interrupt::Interrupt;
use burnish_util::terminal;
use burnish_util::time::{begin_at, begun};

/// Joins the processes that train together, runs a command in each, and leaves together: the others are told of a failure of one alone,
/// and rank 0 reports what all have failed by.
///
/// # Errors
/// If the command fails, with its message on rank 0.
pub fn together(run: impl FnOnce(&Ranks, Interrupt) -> Result<(), Failure>) -> Result<(), Failure> {
    // Launchers send SIGUSR1 as soon as they have started, and its default action kills.
    let interrupt = Interrupt::default();
    interrupt.watch_user_signal().map_err(Failure::setup)?;
    let ranks = Ranks::of(open().map_err(|error| said_once(Failure::setup(error)))?);
    // `${now:…}` and the date that templates are told are those of rank 0.
    if let Some(moment) = ranks.gather(ranks.is_first().then(begun))[0] {
        begin_at(moment);
    }
    if !ranks.is_first() {
        terminal::quiet();
    }
    let result = run(&ranks, interrupt);
    let (code, message) = result.as_ref().err().map_or((0, None), |failure| (failure.code(), failure.message()));
    ranks.group().end(code, &message.unwrap_or_default());
    match result {
        Err(failure) if !ranks.is_first() => Err(Failure::Elsewhere(failure.code())),
        result => result,
    }
}

/// Refuses a command that does not train where a launcher started several processes: each would do all of it.
///
/// # Errors
/// Such a launcher.
pub fn refuse_several() -> Result<(), Failure> {
    match launcher().and_then(|launcher| Some((launcher.command, launcher.processes.filter(|&count| count > 1)?))) {
        None => Ok(()),
        Some((by, count)) => Err(said_once(Failure::Setup(format!(
            "this command runs in one process, and {by} started {count}: several train together, and nothing else"
        )))),
    }
}

/// A failure that all processes have and know nothing of each other: the first one reports it.
fn said_once(failure: Failure) -> Failure {
    if launched_rank().is_some_and(|rank| rank > 0) { Failure::Elsewhere(failure.code()) } else { failure }
}

/// The configuration, which all ranks must have alike, and which they must be as many as. Where it says that the run begins afresh and
/// its folder holds the work of another one, it has the folder that the run takes instead.
///
/// # Errors
/// The errors of loading it; ranks that have another one, or are of another version of the program; another number of ranks.
pub fn load<C: Schema>(ranks: &Ranks, args: &ConfigArgs) -> Result<Loaded<C>, Failure> {
    let loaded = agreed(ranks, args.load_for::<C>(ranks.size()))?;
    ranks.same("the program", env!("CARGO_PKG_VERSION")).map_err(Failure::setup)?;
    ranks.same("the configuration", &loaded.tree.as_written().to_yaml()).map_err(Failure::setup)?;
    // What comes from the environment is not in that text, and may be secret.
    let values = format!("CRC-32 {:08x}", IEEE.of(format!("{:?}", loaded.config).as_bytes()));
    ranks.same("a value from the environment (${oc.env:…})", &values).map_err(Failure::setup)?;
    match ranks.first(|| Ok(run_folder::taken_instead(&loaded.tree))).map_err(Failure::setup)?.as_deref().and_then(Path::to_str) {
        None => Ok(loaded),
        Some(folder) => agreed(ranks, args.load_with(ranks.size(), run_folder::DIR, folder)),
    }
}

/// What a rank has found before the first step, or the failure of any of them.
///
/// # Errors
/// The failure of this rank, or of another one, with its number.
pub fn agreed<T, E: Into<Error>>(ranks: &Ranks, own: Result<T, E>) -> Result<T, Failure> {
    ranks.agree(own.map_err(Into::into)).map_err(Failure::setup)
}
