//! The engine of MPI: `mpirun`, `mpiexec` or `srun` starts the processes, and ends all of them when one dies.
//!
//! Every call begins with a meeting ([`meet`]): rank 0 hears of each rank that it has come, and to which call, and then lets all of
//! them go. So a rank that is gone, hangs or makes another call is named before any data is exchanged. Nothing blocks: whoever waits
//! asks MPI again and again, asleep in between, and gives up when its patience ends.

mod data;
mod engine;
mod meet;
mod message;
mod others;
mod waiting;
mod world;

pub use engine::Mpi;
