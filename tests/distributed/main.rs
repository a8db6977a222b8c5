//! Tests of distributed training: of the library on threads, which needs no launcher, and of the real binary under `mpirun`.
//!
//! Tests with the binary need the feature `mpi` and a launcher: `cargo test --release --features mpi --test distributed`. Without
//! a launcher they pass with a message, unless `BURNISH_REQUIRE_MPI` is set. Tests on threads, which compute the same with and
//! without the feature, run only without it. `BURNISH_MPIRUN` names another launcher than `mpirun`, such as `mpirun.mpich` for a
//! build with `MPICC=mpicc.mpich`.

#[expect(dead_code, reason = "the tests of one process use the rest")]
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
