//! Interface of an engine for ranks that train together: it moves bytes.

use std::time::Duration;

/// Exit code of a run that lost a rank or the network (EX_TEMPFAIL of sysexits.h). The run resumes when it is started again.
pub const LOST: u8 = 75;

/// The ranks that train together. Every call is collective unless documented otherwise: each rank makes it, in the same order,
/// from the thread that opened the group.
///
/// A call does not return if it cannot be completed, because a rank is gone, hangs or makes another call. The engine then prints
/// the reason and ends the process with [`LOST`]. So no state is half exchanged, and callers have no errors to handle.
pub trait Group: Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Returns the index of this rank on its machine, and the number of ranks on the machine.
    fn local(&self) -> (usize, usize);

    /// Sends each rank its part of `send`, and receives one part from each rank (MPI's alltoallv). The parts are concatenated and
    /// have `send_counts` and `received_counts` bytes.
    fn exchange(&self, send: &[u8], send_counts: &[usize], received: &mut [u8], received_counts: &[usize]);

    /// Collects the bytes of all ranks, in their order, on all ranks (MPI's allgatherv). `counts` are the bytes of each.
    fn all_gather(&self, own: &[u8], all: &mut [u8], counts: &[usize]);

    /// Copies the bytes of rank `root` to all ranks.
    fn broadcast(&self, bytes: &mut [u8], root: usize);

    /// Waits until all ranks have finished. Takes this rank's exit code and, if it failed, the message that it prints. This is
    /// the last call, after all output of this rank. Rank 0 returns first, to print its message: a launcher ends all processes as
    /// soon as one has failed.
    /// processes as soon as one has failed.
    /// Prints different messages of other ranks once, with the ranks' numbers. If a rank has failed while another one is in
    /// another call, prints the failed rank's message and ends the job with its exit code.
    /// one is at another call, its message is printed here too, and the job ends with its code.
    fn end(&self, code: u8, message: &str);

    /// Tells the other ranks that this rank is still working, if the last such message is some time ago. Not collective.
    fn beat(&self) {}

    /// Sets how long ranks wait for one that neither arrives nor gives a sign; the default is 10 minutes. Not collective.
    fn set_patience(&self, _patience: Duration) {}
}
