//! Choice of the engine: MPI if a launcher started this process with others, otherwise no engine.

use std::sync::Arc;

use anyhow::{Result, bail};

use super::cores;
use super::group::Group;
use super::launch::{Launcher, MPIRUN, launcher, other_processes};
use super::solo::Solo;

/// Joins the processes that a launcher started, if the program is built with the feature `mpi`. Must be called once, before any
/// other call in a command that trains, on the main thread, which makes all later calls.
///
/// # Errors
/// If several processes do not find each other: without the feature, with another MPI than the launcher's, or with a launcher
/// that does not support MPI.
pub fn open() -> Result<Arc<dyn Group>> {
    let launcher = launcher();
    let group = match launcher {
        Some(launcher) => connect(launcher)?,
        None => Arc::new(Solo) as Arc<dyn Group>,
    };
    if group.size() == 1 {
        check_alone(launcher)?;
    }
    cores::share_out(group.local(), launcher.is_some_and(|launcher| launcher.command == MPIRUN));
    Ok(group)
}

/// Refuses to run if this process sees no other although others were started.
fn check_alone(launcher: Option<Launcher>) -> Result<()> {
    if let Some(Launcher { command, processes: Some(count) }) = launcher.filter(|launcher| launcher.processes > Some(1)) {
        bail!(
            "{command} started {count} processes, but each sees itself alone and would train alone, in the same folder, because this \
             program is built with another MPI than that of {command}: start it with the launcher of its MPI, or build it with MPICC \
             set to the mpicc of {command} (docs/scale-out.md)"
        );
    }
    if let Some((variable, count)) = other_processes() {
        bail!(
            "{variable}={count}, so {count} processes were started, but not by MPI: each would train alone, in the same folder. \
             Start them by mpirun, by srun --mpi=pmix, or by launch/mpirun-from-env (docs/scale-out.md); for one process, unset {variable}"
        );
    }
    Ok(())
}

#[cfg(feature = "mpi")]
fn connect(_: Launcher) -> Result<Arc<dyn Group>> {
    Ok(Arc::new(super::mpi::Mpi::init()?))
}

#[cfg(not(feature = "mpi"))]
fn connect(Launcher { command, processes }: Launcher) -> Result<Arc<dyn Group>> {
    if processes == Some(1) {
        return Ok(Arc::new(Solo));
    }
    bail!(
        "{command} started this process, but this program is built without MPI, so every process would train alone: install \
         burnish[mpi] by pip, or build it with `cargo build --release --features mpi` (docs/scale-out.md)"
    )
}
