//! Commands that train, in one process or in several processes of a launcher.

use std::path::Path;

use anyhow::Error;

use super::args::ConfigArgs;
use super::error::CliError;
use super::in_sweep::follow_parent;
use crate::job::run_folder;
use burnish_config::Loaded;
use burnish_config::schema::Schema;
use burnish_distributed::{Ranks, launched_rank, launcher, open};
use burnish_util::crc::IEEE;
use burnish_util::interrupt::Interrupt;
use burnish_util::terminal;
use burnish_util::time::{begin_at, begun};

/// Joins the ranks, runs a command in each, and ends them together. The other ranks learn of a failure of a single rank, and rank 0
/// reports a failure that all ranks share.
///
/// # Errors
/// If the command fails, with its message on rank 0.
pub(super) fn together(run: impl FnOnce(&Ranks, Interrupt) -> Result<(), CliError>) -> Result<(), CliError> {
    // Launchers send SIGUSR1 right after their start, and its default action kills.
    let interrupt = Interrupt::default();
    interrupt.watch_user_signal().map_err(CliError::setup)?;
    follow_parent(&interrupt);
    let ranks = Ranks::new(open().map_err(|error| reported_once(CliError::setup(error)))?);
    // All ranks use `${now:…}` and the date of templates of rank 0.
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
        Err(failure) if !ranks.is_first() => Err(CliError::Elsewhere(failure.code())),
        result => result,
    }
}

/// Refuses a command that does not train if a launcher started several processes: each process would do all the work.
///
/// # Errors
/// If a launcher started several processes.
pub(crate) fn refuse_several() -> Result<(), CliError> {
    match launcher().and_then(|launcher| Some((launcher.command, launcher.processes.filter(|&count| count > 1)?))) {
        None => Ok(()),
        Some((by, count)) => Err(reported_once(CliError::Setup(format!(
            "this command runs in one process, and {by} started {count}: only training runs in several processes"
        )))),
    }
}

/// Returns a failure that each process found independently: only the first process reports it.
pub(super) fn reported_once(failure: CliError) -> CliError {
    if launched_rank().is_some_and(|rank| rank > 0) { CliError::Elsewhere(failure.code()) } else { failure }
}

/// Loads the configuration, which must be equal on all ranks and fit their number. If the run starts afresh and its folder holds
/// another run, the configuration names the folder that the run uses instead.
///
/// # Errors
/// The errors of loading; ranks with another configuration or another version of the program; a wrong number of ranks.
pub(super) fn load<C: Schema>(ranks: &Ranks, args: &ConfigArgs) -> Result<Loaded<C>, CliError> {
    let loaded = agreed(ranks, args.load_for::<C>(ranks.size()))?;
    ranks.same("the program", env!("CARGO_PKG_VERSION")).map_err(CliError::setup)?;
    ranks.same("the configuration", &loaded.tree.as_written().to_yaml()).map_err(CliError::setup)?;
    // Values from the environment are not in that text, and may be secret.
    let values = format!("CRC-32 {:08x}", IEEE.checksum(format!("{:?}", loaded.config).as_bytes()));
    ranks.same("a value from the environment (${oc.env:…})", &values).map_err(CliError::setup)?;
    match ranks.first(|| Ok(run_folder::taken_instead(&loaded.tree))).map_err(CliError::setup)?.as_deref().and_then(Path::to_str)
    {
        None => Ok(loaded),
        Some(folder) => agreed(ranks, args.load_with(ranks.size(), run_folder::DIR, folder)),
    }
}

/// Returns a result of this rank before the first step, or the failure of any rank.
///
/// # Errors
/// The failure of this rank or of another one, with the index of the rank.
pub(super) fn agreed<T, E: Into<Error>>(ranks: &Ranks, own: Result<T, E>) -> Result<T, CliError> {
    ranks.agree(own.map_err(Into::into)).map_err(CliError::setup)
}
