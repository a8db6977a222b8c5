//! The launcher that started this process, as found in the environment.

use std::env;

/// A launcher that supports MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Command that users type.
    pub command: &'static str,
    /// Number of processes that it started; `None` if the environment lacks it.
    pub processes: Option<usize>,
}

/// Command of Open MPI's launcher, the only one that pins ranks to cores by default.
pub(crate) const MPIRUN: &str = "mpirun";

/// For each launcher: variables, at least one set in every process; the variable with the number of processes; and the command.
/// Open MPI's come first, because it also sets PMIx's. PMI's variables are set by Hydra (of MPICH, Intel MPI and MVAPICH), by
/// Slurm's `--mpi=pmi2` and by Cray's PALS. With `--mpi=pmix`, Slurm gives the number only in its own variable.
const LAUNCHERS: &[(&[&str], &str, &str)] = &[
    (&["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"], "OMPI_COMM_WORLD_SIZE", MPIRUN),
    (&["PMI_SIZE", "PMI_RANK"], "PMI_SIZE", "mpiexec"),
    (&["PMIX_RANK"], "SLURM_STEP_NUM_TASKS", "srun --mpi=pmix"),
];

/// Variables with the rank of a process.
const RANKS: &[&str] = &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"];

/// Variables with the number of processes that a launcher other than MPI has started: torchrun and compatible ones, and Slurm's
/// `srun`. In a batch script, which runs as one process, Slurm sets the number of tasks, but not the number of tasks of a step.
const OTHERS: &[&str] = &["WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];

/// Returns the launcher that started this process by MPI; `None` without a launcher.
pub fn launcher() -> Option<Launcher> {
    launcher_in(variable)
}

/// Returns the rank that the launcher gave this process in its variables.
pub fn launched_rank() -> Option<usize> {
    RANKS.iter().find_map(|name| variable(name)?.parse().ok())
}

/// Returns the variable of a launcher that starts several processes without MPI, and their number: each would train by itself.
pub(crate) fn other_processes() -> Option<(&'static str, usize)> {
    other_processes_in(variable)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn launcher_in(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    let is_set = |names: &[&str]| names.iter().any(|name| variable(name).is_some());
    let (_, count, command) = LAUNCHERS.iter().find(|(names, ..)| is_set(names))?;
    Some(Launcher { command, processes: variable(count).and_then(|count| count.parse().ok()) })
}

fn other_processes_in(variable: impl Fn(&str) -> Option<String>) -> Option<(&'static str, usize)> {
    let count = |name: &str| variable(name)?.parse().ok().filter(|&count: &usize| count > 1);
    OTHERS.iter().find_map(|&name| Some((name, count(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_shows_who_started_this_process() {
        let found = |set: &[(&str, &str)]| {
            let variable = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
            let launcher = launcher_in(variable).map(|launcher| (launcher.command, launcher.processes));
            (launcher, other_processes_in(variable))
        };
        assert_eq!(found(&[]), (None, None));
        let open_mpi = [("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "0")];
        assert_eq!(found(&open_mpi), (Some(("mpirun", Some(4))), None));
        assert_eq!(found(&[("PMI_RANK", "1"), ("PMI_SIZE", "2")]), (Some(("mpiexec", Some(2))), None));
        assert_eq!(found(&[("PMI_RANK", "1")]), (Some(("mpiexec", None)), None));
        let slurm = [("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "8")];
        assert_eq!(found(&slurm), (Some(("srun --mpi=pmix", Some(8))), Some(("SLURM_STEP_NUM_TASKS", 8))));
        assert_eq!(found(&[("SLURM_STEP_NUM_TASKS", "1"), ("WORLD_SIZE", "")]), (None, None));
        assert_eq!(found(&[("WORLD_SIZE", "16"), ("SLURM_NTASKS", "16")]), (None, Some(("WORLD_SIZE", 16))));
    }
}
