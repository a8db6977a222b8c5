//! The group of the processes that MPI started.

use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anyhow::Result;

use super::message::Call;
use super::others::OtherRanks;
use super::world::{PANICKED, World};
use crate::group::{Group, LOST};
use burnish_util::terminal;

/// The processes that MPI started, seen from one of them.
pub(crate) struct Mpi {
    world: World,
    /// The thread that initialised MPI, which makes all calls.
    thread: ThreadId,
    /// `None` once the work has ended.
    others: Mutex<Option<OtherRanks>>,
}

impl Mpi {
    /// Joins the other ranks. Must be called once per process.
    ///
    /// # Errors
    /// If MPI is already initialised, or does not support threads.
    pub(crate) fn init() -> Result<Self> {
        let world = World::open()?;
        let others = OtherRanks::new(&world);
        Ok(Self { world, thread: thread::current().id(), others: Mutex::new(Some(others)) })
    }

    /// Returns the state of the other ranks.
    ///
    /// # Panics
    /// On another thread than the one that initialised MPI, which libraries need not support.
    fn others(&self) -> MutexGuard<'_, Option<OtherRanks>> {
        assert_eq!(thread::current().id(), self.thread, "ranks speak on the thread that opened the group");
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time that rank 0 has to print its message, before another rank exits with a code on which a launcher ends all processes.
const RANK_0_FIRST: Duration = Duration::from_millis(300);
const ENDED: &str = "no call comes after the end";

impl Group for Mpi {
    fn rank(&self) -> usize {
        self.world.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn local(&self) -> (usize, usize) {
        self.world.local
    }

    fn exchange(&self, send: &[u8], send_counts: &[usize], received: &mut [u8], received_counts: &[usize]) {
        let mut others = self.others();
        let others = others.as_mut().expect(ENDED);
        let own = others.meet(&self.world, Call::Exchange);
        let starts: Vec<usize> = send_counts.iter().scan(0, |end, n| Some(std::mem::replace(end, *end + n))).collect();
        let send = |rank: usize| &send[starts[rank]..][..send_counts[rank]];
        others.pairwise(&self.world, &own, send, received, received_counts);
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8], counts: &[usize]) {
        let mut others = self.others();
        let others = others.as_mut().expect(ENDED);
        let call = others.meet(&self.world, Call::AllGather { bytes: all.len() as u64 });
        others.pairwise(&self.world, &call, |_| own, all, counts);
    }

    fn broadcast(&self, bytes: &mut [u8], root: usize) {
        let mut others = self.others();
        let others = others.as_mut().expect(ENDED);
        let call = others.meet(&self.world, Call::Broadcast { bytes: bytes.len() as u64, root });
        others.broadcast(&self.world, &call, bytes, root);
    }

    fn end(&self, code: u8, message: &str) {
        let mut others = self.others();
        let mut others = others.take().expect(ENDED);
        others.meet(&self.world, Call::End { code, message: message.to_owned() });
        watch_farewell(others.patience, if code == 0 { LOST } else { code });
        self.world.finalize();
        if code != 0 && self.world.rank != 0 {
            thread::sleep(RANK_0_FIRST);
        }
    }

    fn beat(&self) {
        if let Some(others) = self.others().as_mut() {
            others.beat(&self.world);
            others.check_failed(&self.world);
        }
    }

    fn set_patience(&self, patience: Duration) {
        if let Some(others) = self.others().as_mut() {
            others.patience = patience;
        }
    }
}

impl Drop for Mpi {
    /// Ends the job if this rank panics: the others would wait for it.
    fn drop(&mut self) {
        let has_ended = self.others.get_mut().is_ok_and(|others| others.is_none());
        if thread::panicking() && !has_ended {
            self.world.abort(PANICKED);
        }
    }
}

/// Ends this process, and thereby the job, if another rank does not finalize MPI. Otherwise MPI would wait for that rank forever.
fn watch_farewell(patience: Duration, code: u8) {
    let watch = move || {
        thread::sleep(patience);
        terminal::say("error: a rank has not finalized MPI, although all work is done\n");
        process::exit(i32::from(code));
    };
    // Without this thread nothing watches the other ranks, and the end is as reliable as MPI makes it.
    _ = thread::Builder::new().spawn(watch);
}
