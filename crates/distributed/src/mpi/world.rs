//! Safe wrappers of MPI's C functions; all `unsafe` code of the engine is here.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::process;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use mpi::Threading;
use mpi::ffi::{
    MPI_Abort, MPI_Comm, MPI_Comm_free, MPI_Comm_rank, MPI_Comm_set_errhandler, MPI_Comm_size, MPI_Comm_split_type,
    MPI_Error_string, MPI_Finalize, MPI_Get_count, MPI_Ibcast, MPI_Iprobe, MPI_Irecv, MPI_Isend, MPI_Request, MPI_Test,
    MPI_Testall, RSMPI_ANY_SOURCE, RSMPI_COMM_TYPE_SHARED, RSMPI_COMM_WORLD, RSMPI_ERRORS_RETURN, RSMPI_INFO_NULL,
    RSMPI_STATUS_IGNORE, RSMPI_STATUSES_IGNORE, RSMPI_UINT8_T,
};

use crate::group::LOST;
use burnish_util::terminal;

/// Tag of messages between rank 0 and the others.
const CONTROL: c_int = 1;
/// Tag of data: between two ranks, parts arrive in the order in which they were sent.
const DATA: c_int = 2;
/// Largest number of bytes of one message. MPI counts with 32 bits.
const PART: usize = 256 << 20;
/// Exit code of a Rust program that panics.
pub(crate) const PANICKED: u8 = 101;

/// The processes that MPI knows. MPI's functions are called only on the thread that opened it.
pub(crate) struct World {
    comm: MPI_Comm,
    pub rank: usize,
    pub size: usize,
    /// Index of this process on its machine, and the number of processes there.
    pub local: (usize, usize),
}

// SAFETY: a communicator is a number or an address that MPI alone reads, and `Mpi`, which owns this, asserts that all calls are
// made by the thread that initialised MPI, as `Threading::Funneled` demands.
unsafe impl Send for World {}
// SAFETY: as for `Send`.
unsafe impl Sync for World {}

impl World {
    /// Initialises MPI.
    ///
    /// # Errors
    /// If MPI is already initialised, or was built without thread support.
    pub(super) fn open() -> Result<Self> {
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Funneled) else {
            bail!("MPI is already initialised");
        };
        // Its drop would finalise MPI when a panic unwinds, and wait there for the other ranks forever.
        mem::forget(universe);
        ensure!(threading >= Threading::Funneled, "this MPI library does not support threads (MPI_THREAD_FUNNELED)");
        let (mut rank, mut size, mut local_rank, mut local_size) = (0, 0, 0, 0);
        // SAFETY: MPI is initialised; all results are written to live variables. Errors end the process until the handler is set.
        let comm = unsafe {
            let comm = RSMPI_COMM_WORLD;
            MPI_Comm_rank(comm, &mut rank);
            MPI_Comm_size(comm, &mut size);
            let mut machine = MaybeUninit::uninit();
            MPI_Comm_split_type(comm, RSMPI_COMM_TYPE_SHARED, 0, RSMPI_INFO_NULL, machine.as_mut_ptr());
            let mut machine = machine.assume_init();
            MPI_Comm_rank(machine, &mut local_rank);
            MPI_Comm_size(machine, &mut local_size);
            MPI_Comm_free(&mut machine);
            MPI_Comm_set_errhandler(comm, RSMPI_ERRORS_RETURN);
            comm
        };
        Ok(Self { comm, rank: rank as usize, size: size as usize, local: (local_rank as usize, local_size as usize) })
    }

    /// Sends a small message to a rank. The message is in transit afterwards, and has left once [`Posted::has_left`] returns
    /// true.
    pub(super) fn post(&self, to: usize, bytes: Vec<u8>) -> Posted {
        // SAFETY: the bytes live until the request is done, or are leaked.
        let request = unsafe { self.send(&bytes, to, CONTROL) };
        Posted { request: Some(request), bytes }
    }

    /// Returns the next small message that has arrived, and its sender. `wait` is called until the message is complete.
    pub(super) fn next(&self, mut wait: impl FnMut(usize)) -> Option<(usize, Vec<u8>)> {
        let (mut is_here, mut status, mut count) = (0, MaybeUninit::uninit(), 0);
        // SAFETY: all results are written to live variables; there is a status if there is a message.
        let (from, mut bytes) = unsafe {
            self.check(
                "asking for messages",
                MPI_Iprobe(RSMPI_ANY_SOURCE, CONTROL, self.comm, &mut is_here, status.as_mut_ptr()),
            );
            if is_here == 0 {
                return None;
            }
            let status = status.assume_init();
            self.check("the size of a message", MPI_Get_count(&status, RSMPI_UINT8_T, &mut count));
            (status.MPI_SOURCE as usize, vec![0; count as usize])
        };
        let mut parts = self.parts();
        // SAFETY: `Parts` does not let go of the bytes before they have arrived.
        parts.add(from, unsafe { self.receive(&mut bytes, from, CONTROL) });
        while !parts.are_done() {
            wait(from);
        }
        drop(parts);
        Some((from, bytes))
    }

    /// Creates an empty set of transfers to and from other ranks.
    pub(super) fn parts<'a>(&'a self) -> Parts<'a> {
        Parts { world: self, requests: Vec::new(), partners: Vec::new(), buffers: PhantomData }
    }

    /// Ends all processes of the job with this exit code, after a pause in which the launcher can print their output. Otherwise
    /// MPICH's launcher loses it.
    pub(super) fn abort(&self, code: u8) -> ! {
        thread::sleep(Duration::from_millis(300));
        // SAFETY: it does not return, or only to a process that ends at once.
        unsafe { MPI_Abort(self.comm, c_int::from(code)) };
        process::exit(i32::from(code))
    }

    /// Ends all processes of the job because a call cannot be completed, and prints the reason.
    pub(super) fn lost(&self, why: &str) -> ! {
        terminal::say(&format!(
            "error: {why}. All {} processes end with exit code {LOST}; the same command resumes from the last checkpoint, if any\n",
            self.size
        ));
        self.abort(LOST)
    }

    /// Finalizes MPI, which waits until all ranks do. No MPI function may be called afterwards.
    pub(super) fn finalize(&self) {
        // SAFETY: all ranks have met, and no message is on its way.
        unsafe { MPI_Finalize() };
    }

    /// # Safety
    /// The bytes must not move until the request is done.
    unsafe fn send(&self, bytes: &[u8], to: usize, tag: c_int) -> MPI_Request {
        let mut request = MaybeUninit::uninit();
        let (start, count) = (bytes.as_ptr().cast(), bytes.len() as c_int);
        // SAFETY: the caller's promise, and a request is written before it is read, or the process has ended.
        unsafe {
            self.check("sending", MPI_Isend(start, count, RSMPI_UINT8_T, to as c_int, tag, self.comm, request.as_mut_ptr()));
            request.assume_init()
        }
    }

    /// # Safety
    /// Nothing may read the bytes until the request is done.
    unsafe fn receive(&self, bytes: &mut [u8], from: usize, tag: c_int) -> MPI_Request {
        let mut request = MaybeUninit::uninit();
        let (start, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
        // SAFETY: as in `send`.
        unsafe {
            self.check("receiving", MPI_Irecv(start, count, RSMPI_UINT8_T, from as c_int, tag, self.comm, request.as_mut_ptr()));
            request.assume_init()
        }
    }

    /// Ends the job if an MPI function has failed: it is unknown how much of its work is done.
    fn check(&self, what: &str, code: c_int) {
        if code == 0 {
            return;
        }
        let (mut text, mut length) = (vec![0; 8192], 0);
        // SAFETY: the buffer is larger than MPI_MAX_ERROR_STRING of every library.
        unsafe { MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) };
        let text = String::from_utf8_lossy(&text[..length as usize]).into_owned();
        self.lost(&format!("rank {} has lost the others: MPI, {what}: {}", self.rank, text.trim()))
    }
}

/// A small message and its bytes, until they have left.
pub(crate) struct Posted {
    request: Option<MPI_Request>,
    bytes: Vec<u8>,
}

// SAFETY: as for `World`: a request is a number or an address, and used by one thread.
unsafe impl Send for Posted {}

impl Posted {
    pub(super) fn has_left(&mut self, world: &World) -> bool {
        let Some(request) = &mut self.request else { return true };
        let mut is_done = 0;
        // SAFETY: the request is live until MPI says that it is done.
        world.check("sending", unsafe { MPI_Test(request, &mut is_done, RSMPI_STATUS_IGNORE) });
        if is_done != 0 {
            self.request = None;
        }
        is_done != 0
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        // MPI may still read them.
        if self.request.is_some() {
            mem::forget(mem::take(&mut self.bytes));
        }
    }
}

/// Data in transit, in parts, to and from other ranks.
pub(super) struct Parts<'a> {
    world: &'a World,
    requests: Vec<MPI_Request>,
    /// The other rank of each request.
    partners: Vec<usize>,
    /// Buffers that MPI reads and writes.
    buffers: PhantomData<&'a mut [u8]>,
}

impl<'a> Parts<'a> {
    pub(super) fn send(&mut self, to: usize, bytes: &'a [u8]) {
        for part in bytes.chunks(PART) {
            // SAFETY: the bytes are borrowed until all requests are done: see `drop`.
            let request = unsafe { self.world.send(part, to, DATA) };
            self.add(to, request);
        }
    }

    pub(super) fn receive(&mut self, from: usize, bytes: &'a mut [u8]) {
        for part in bytes.chunks_mut(PART) {
            // SAFETY: as in `send`; the borrow is exclusive.
            let request = unsafe { self.world.receive(part, from, DATA) };
            self.add(from, request);
        }
    }

    /// Sends bytes to all ranks, or receives them from the rank `root`.
    pub(crate) fn broadcast(&mut self, bytes: &'a mut [u8], root: usize) {
        for part in bytes.chunks_mut(PART) {
            let mut request = MaybeUninit::uninit();
            let (start, count) = (part.as_mut_ptr().cast(), part.len() as c_int);
            // SAFETY: as in `receive`; the request is written before it is read.
            let request = unsafe {
                let code = MPI_Ibcast(start, count, RSMPI_UINT8_T, root as c_int, self.world.comm, request.as_mut_ptr());
                self.world.check("broadcasting", code);
                request.assume_init()
            };
            self.add(root, request);
        }
    }

    fn add(&mut self, other: usize, request: MPI_Request) {
        self.requests.push(request);
        self.partners.push(other);
    }

    /// Returns true once all parts have arrived.
    pub(crate) fn are_done(&mut self) -> bool {
        let (mut are_done, count) = (0, self.requests.len() as c_int);
        // SAFETY: the requests are live until MPI says that all are done.
        let code = unsafe { MPI_Testall(count, self.requests.as_mut_ptr(), &mut are_done, RSMPI_STATUSES_IGNORE) };
        self.world.check("waiting", code);
        if are_done != 0 {
            self.requests.clear();
            self.partners.clear();
        }
        are_done != 0
    }

    /// Returns the ranks whose parts have not arrived, in ascending order.
    pub(super) fn late(&mut self) -> Vec<usize> {
        let mut late = Vec::new();
        for (request, other) in self.requests.iter_mut().zip(&self.partners) {
            let mut is_done = 0;
            // SAFETY: a request that is done becomes the null request, which is always done.
            self.world.check("waiting", unsafe { MPI_Test(request, &mut is_done, RSMPI_STATUS_IGNORE) });
            if is_done == 0 {
                late.push(*other);
            }
        }
        late.sort_unstable();
        late.dedup();
        late
    }
}

impl Drop for Parts<'_> {
    fn drop(&mut self) {
        // A panic in transit, already reported: MPI would write into freed memory.
        if !self.requests.is_empty() {
            self.world.abort(PANICKED);
        }
    }
}
