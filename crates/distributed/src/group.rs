//! What an engine does for the processes that train together: it moves bytes.

use std::time::Duration;

/// The exit code of a run that lost a process or the network: started again, it resumes (EX_TEMPFAIL of sysexits.h).
pub const LOST: u8 = 75;

/// The processes that train together. Every call is collective unless it says otherwise: each rank makes it, in the same order, from
/// the thread that opened the group.
///
/// A call that cannot be completed, because a rank is gone, hangs or makes another call, does not return: the engine says why and ends
/// the process with [`LOST`]. So no state is half exchanged, and no caller has an error to handle.
pub trait Group: Send + Sync {
    /// The number of this process among all of them, from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// The number of this process among those of its machine, and how many these are.
    fn local(&self) -> (usize, usize);

    /// Sends each rank its part of `send`, which lie one after another and have `send_counts` bytes, and receives one part from each
    /// in the same way (MPI's alltoallv).
    fn exchange(&self, send: &[u8], send_counts: &[usize], received: &mut [u8], received_counts: &[usize]);

    /// Collects the bytes of all ranks, in their order, on all ranks (MPI's allgatherv). `counts`: the bytes of each.
    fn all_gather(&self, own: &[u8], all: &mut [u8], counts: &[usize]);

    /// Copies the bytes of rank `root` to all.
    fn broadcast(&self, bytes: &mut [u8], root: usize);

    /// Returns when all ranks have come with the end of their work: this rank's exit code and, if it failed, the message that it prints.
    /// It is the last call, after all that this rank writes, and rank 0 returns first, to print its message: a launcher ends all
    /// processes as soon as one has failed.
    ///
    /// Messages of other ranks that are other ones are printed here, once and with the ranks' numbers. If a rank has failed and another
    /// one is at another call, its message is printed here too, and the job ends with its code.
    fn end(&self, code: u8, message: &str);

    /// Tells the others that this rank is at work and will come, if it is some time since they heard so. Not collective.
    fn beat(&self) {}

    /// Sets how long ranks wait for one that neither comes nor beats: 10 minutes if it is not set. Not collective.
    fn set_patience(&self, _patience: Duration) {}
}
