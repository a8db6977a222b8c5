//! A group of threads of this process, for tests: it needs no launcher, and a debugger shows mistakes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::group::Group;

/// Returns the handles of `size` ranks, each for a separate thread.
pub fn threads(size: usize) -> Vec<Arc<dyn Group>> {
    let table = Table { size, laid: Mutex::default(), turned: Condvar::new() };
    table.lock().slots.resize(size, ("", Vec::new()));
    let table = Arc::new(table);
    (0..size).map(|rank| -> Arc<dyn Group> { Arc::new(Thread { rank, table: table.clone() }) }).collect()
}

/// State that the threads share.
struct Table {
    size: usize,
    laid: Mutex<Laid>,
    turned: Condvar,
}

#[derive(Default)]
struct Laid {
    /// Call of each rank, and its bytes.
    slots: Vec<(&'static str, Vec<u8>)>,
    /// Number of ranks that wait, and number of completed rounds.
    waiting: usize,
    turns: usize,
    /// True once a rank has panicked: it will never arrive.
    is_broken: bool,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Laid> {
        self.laid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all ranks have arrived.
    ///
    /// # Panics
    /// If one of them has panicked.
    fn wait(&self) {
        let mut laid = self.lock();
        let turn = laid.turns;
        laid.waiting += 1;
        if laid.waiting == self.size {
            (laid.waiting, laid.turns) = (0, turn + 1);
            self.turned.notify_all();
        }
        while laid.turns == turn {
            assert!(!laid.is_broken, "another rank has panicked");
            laid = self.turned.wait(laid).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Thread {
    rank: usize,
    table: Arc<Table>,
}

impl Thread {
    /// Publishes bytes, passes the bytes of all ranks to `read`, and waits until all ranks have read them.
    ///
    /// # Panics
    /// If another rank makes another call.
    fn meet<T>(&self, call: &'static str, own: Vec<u8>, read: impl FnOnce(&[Vec<u8>]) -> T) -> T {
        self.table.lock().slots[self.rank] = (call, own);
        self.table.wait();
        let (calls, all): (Vec<_>, Vec<_>) = self.table.lock().slots.iter().cloned().unzip();
        assert!(calls.iter().all(|other| *other == call), "rank {} is in {call}, and the ranks are in {calls:?}", self.rank);
        let result = read(&all);
        self.table.wait();
        result
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.table.lock().is_broken = true;
            self.table.turned.notify_all();
        }
    }
}

impl Group for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.table.size
    }

    fn local(&self) -> (usize, usize) {
        (self.rank, self.size())
    }

    fn exchange(&self, send: &[u8], send_counts: &[usize], received: &mut [u8], received_counts: &[usize]) {
        // Each rank's message begins with the offset of every part in it.
        let mut message: Vec<u8> = send_counts.iter().flat_map(|count| (*count as u64).to_le_bytes()).collect();
        message.extend(send);
        self.meet("exchange", message, |all| {
            let mut at = 0;
            for (message, expected) in all.iter().zip(received_counts) {
                let (header, parts) = message.split_at(8 * self.size());
                let count = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize;
                let counts: Vec<usize> = header.chunks(8).map(count).collect();
                assert_eq!(counts[self.rank], *expected, "the bytes for rank {}", self.rank);
                let start: usize = counts[..self.rank].iter().sum();
                received[at..at + expected].copy_from_slice(&parts[start..start + expected]);
                at += expected;
            }
        });
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8], counts: &[usize]) {
        self.meet("all_gather", own.to_vec(), |parts| {
            let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
            assert_eq!(sizes, counts, "the bytes of each rank");
            all.copy_from_slice(&parts.concat());
        });
    }

    fn broadcast(&self, bytes: &mut [u8], root: usize) {
        self.meet("broadcast", bytes.to_vec(), |all| bytes.copy_from_slice(&all[root]));
    }

    fn end(&self, _: u8, _: &str) {
        self.meet("end", Vec::new(), |_| ());
    }
}
