//! The MPI engine: `mpirun`, `mpiexec` or `srun` starts the processes, and ends all of them when one dies.
//!
//! Every call begins with a meeting ([`meet`]): each rank tells rank 0 which call it has reached, and rank 0 then releases all of
//! them. So a rank that is gone, hangs or makes another call is named before any data is exchanged. Nothing blocks: a waiting
//! rank polls MPI, sleeps in between, and gives up when its patience ends.

mod data;
mod engine;
mod meet;
mod message;
mod others;
mod waiting;
mod world;

pub(crate) use engine::Mpi;
