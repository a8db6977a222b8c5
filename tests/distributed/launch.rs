//! Ranks that do not find each other refuse to train: otherwise each would train by itself, in the same folder.

use std::process::Command;

use crate::common::trainer;

/// Returns the message of a run that fails with exit code 2 because of these variables of a launcher.
fn refusal(variables: &[(&str, &str)]) -> String {
    let output = started(variables).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{variables:?}: {message}");
    assert_eq!(message.lines().filter(|line| line.starts_with("error:")).count(), 1, "{message}");
    message
}

fn started(variables: &[(&str, &str)]) -> Command {
    let mut command = trainer(&["--config", "arithmetic/first.yaml", "--dry-run=plan"]);
    command.envs(variables.iter().copied());
    command
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_build_without_mpi_refuses_to_be_one_of_several() {
    let launchers: [(&str, &[(&str, &str)]); 4] = [
        ("mpirun", &[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "0"), ("PMIX_RANK", "0")]),
        ("mpiexec", &[("PMI_SIZE", "2"), ("PMI_RANK", "0")]),
        ("mpiexec", &[("PMI_RANK", "0")]),
        ("srun --mpi=pmix", &[("PMIX_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "4")]),
    ];
    for (launcher, variables) in launchers {
        let message = refusal(variables);
        for part in [launcher, "started this process", "built without MPI", "cargo build --release --features mpi"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    // Only the first rank reports it.
    let output = started(&[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")]).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(2), 0));
    // One process needs no MPI.
    let output = started(&[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn processes_that_were_started_without_mpi_are_refused() {
    for variable in ["WORLD_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let message = refusal(&[(variable, "4")]);
        for part in [&format!("{variable}=4, so 4 processes were started, but not by MPI"), "mpirun"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
    assert!(started(&[("WORLD_SIZE", "1")]).output().unwrap().status.success());
}
