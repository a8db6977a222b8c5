//! Tests of training in several processes: of the real binary, started by `mpirun`.
//!
//! They want the feature `mpi` and a launcher: `cargo test --release --features mpi --test distributed`. Without a launcher they pass
//! and say so, unless `BURNISH_REQUIRE_MPI` is set. `BURNISH_MPIRUN` names another launcher than `mpirun`, such as `mpirun.mpich` for a
//! build with `MPICC=mpicc.mpich`.

#[allow(dead_code)]
#[path = "../binary/common.rs"]
mod common;
#[cfg(feature = "mpi")]
mod failures;
#[cfg(feature = "mpi")]
mod job;
mod launch;
#[cfg(feature = "mpi")]
mod same_bytes;
#[cfg(feature = "mpi")]
mod stops;
#[cfg(not(feature = "mpi"))]
mod threads;
