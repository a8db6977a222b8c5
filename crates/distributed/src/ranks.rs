//! The ranks that train together, as used by the rest of the program: values instead of bytes.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::group::Group;
use super::slices::{Slices, share};
use super::solo::Solo;
use super::tree::leaves_of;
use super::wire::{decoded, encoded, of_f32s, to_f32s};
use burnish_util::interrupt::Interrupted;

/// The ranks that train together, seen from one rank. Clones belong to the same group. With one rank, every call returns at once.
///
/// Calls are collective, like the calls of [`Group`]: a branch around a call must not depend on facts that only one rank knows.
/// An error of one rank must pass through [`agree`](Self::agree) before the function returns between two calls.
#[derive(Clone)]
pub struct Ranks {
    group: Arc<dyn Group>,
    slices: Arc<OnceLock<Slices>>,
}

/// Interval at which a rank that works on another thread gives a sign.
const BEAT: Duration = Duration::from_millis(200);

/// Error of a rank, for the other ranks.
#[derive(Serialize, Deserialize, PartialEq)]
enum RankError {
    Interrupted(String),
    Failed(String),
}

impl Ranks {
    /// Creates the ranks of a group.
    pub fn new(group: Arc<dyn Group>) -> Self {
        Self { group, slices: Arc::default() }
    }

    /// Creates a group with this process only.
    pub fn alone() -> Self {
        Self::new(Arc::new(Solo))
    }

    /// Returns the engine.
    pub fn group(&self) -> &dyn Group {
        &*self.group
    }

    pub fn rank(&self) -> usize {
        self.group.rank()
    }

    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// Returns true for rank 0, the only rank that writes files and calls services.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Returns true if this is the only rank.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Returns this rank's share of `count` consecutive items.
    pub fn share(&self, count: usize) -> Range<usize> {
        share(self.rank(), self.size(), count)
    }

    /// Returns the rank whose [`share`](Self::share) of `count` items contains this item.
    pub fn owner(&self, thing: usize, count: usize) -> usize {
        (0..self.size()).find(|&rank| share(rank, self.size(), count).contains(&thing)).unwrap_or(0)
    }

    /// Sets the division of a mini-batch into slices, for all clones. It depends on the checkpoint that the run resumes from.
    ///
    /// # Panics
    /// If it is set twice.
    pub fn cut_by(&self, slices: Slices) {
        self.slices.set(slices).expect("a run cuts its mini-batches in one way");
    }

    /// Returns the division of a mini-batch into slices, the same on all ranks; one slice until it is set.
    pub fn slices(&self) -> Slices {
        self.slices.get().copied().unwrap_or_default()
    }

    /// Returns the slices whose gradients this rank computes.
    pub fn local_slices(&self) -> Range<usize> {
        leaves_of(self.rank(), self.size(), self.slices().count)
    }

    /// Returns the values of all ranks, in their order.
    pub fn gather<T: Serialize + DeserializeOwned>(&self, own: T) -> Vec<T> {
        if self.is_alone() {
            return vec![own];
        }
        self.gather_bytes(&encoded(&own)).iter().map(|bytes| decoded(bytes)).collect()
    }

    /// Concatenates the lists of all ranks.
    pub fn concat<T: Serialize + DeserializeOwned>(&self, own: Vec<T>) -> Vec<T> {
        self.gather(own).into_iter().flatten().collect()
    }

    /// Concatenates the floats of all ranks, like [`concat`](Self::concat), with 4 bytes for each.
    pub fn concat_f32s(&self, own: Vec<f32>) -> Vec<f32> {
        if self.is_alone() {
            return own;
        }
        self.gather_bytes(&of_f32s(&own)).iter().flat_map(|bytes| to_f32s(bytes)).collect()
    }

    fn gather_bytes(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let mut sizes = vec![0; 8 * self.size()];
        self.group.all_gather(&(own.len() as u64).to_le_bytes(), &mut sizes, &vec![8; self.size()]);
        let size = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes")) as usize;
        let sizes: Vec<usize> = sizes.chunks(8).map(size).collect();
        let mut all = vec![0; sizes.iter().sum()];
        self.group.all_gather(own, &mut all, &sizes);
        let mut rest = all.as_slice();
        let part = |size: usize| rest.split_off(..size).expect("the bytes of all ranks").to_vec();
        sizes.into_iter().map(part).collect()
    }

    /// Returns true on all ranks if `own` is true on any of them.
    pub fn any(&self, own: bool) -> bool {
        !self.is_alone() && self.gather(own).contains(&true) || own
    }

    /// Sends a value from rank 0 to the other ranks, which receive it by [`hear`](Self::hear).
    pub(super) fn tell<T: Serialize>(&self, value: &T) {
        let mut bytes = encoded(value);
        self.group.broadcast(&mut (bytes.len() as u64).to_le_bytes(), 0);
        self.group.broadcast(&mut bytes, 0);
    }

    /// Receives the value that rank 0 sends by [`tell`](Self::tell).
    pub(super) fn hear<T: DeserializeOwned>(&self) -> T {
        let mut size = [0; 8];
        self.group.broadcast(&mut size, 0);
        let mut bytes = vec![0; u64::from_le_bytes(size) as usize];
        self.group.broadcast(&mut bytes, 0);
        decoded(&bytes)
    }

    /// Runs a function only on rank 0, and returns its result on all ranks. For everything that writes a file or calls a service.
    ///
    /// # Errors
    /// The error of rank 0, on all ranks.
    pub fn first<T: Serialize + DeserializeOwned>(&self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.is_first() {
            return self.hear::<Result<T, RankError>>().map_err(RankError::into_error);
        }
        let result = run();
        if !self.is_alone() {
            self.tell(&result.as_ref().map_err(RankError::from_error));
        }
        result
    }

    /// Returns an error on all ranks if any rank has one: all leave a phase together, with the same information.
    ///
    /// # Errors
    /// The errors of the ranks that have one, with their ranks, or the single error that all ranks have. If some ranks were
    /// interrupted and others failed, only the failures are returned.
    pub fn agree<T>(&self, own: Result<T>) -> Result<T> {
        if self.is_alone() {
            return own;
        }
        let all = self.gather(own.as_ref().err().map(RankError::from_error));
        if all.iter().all(|failure| *failure == all[0]) {
            return own;
        }
        let errors = || all.iter().enumerate().filter_map(|(rank, failure)| Some((rank, failure.as_ref()?)));
        let has_failed = errors().any(|(_, failure)| matches!(failure, RankError::Failed(_)));
        let causes = errors().filter(|(_, failure)| matches!(failure, RankError::Failed(_)) == has_failed);
        let causes = causes.map(|(rank, failure)| format!("rank {rank}: {failure}")).collect::<Vec<_>>().join("\n");
        Err(if has_failed { anyhow!(causes) } else { Interrupted(causes).into() })
    }

    /// Checks that all ranks have the same `own` text.
    ///
    /// # Errors
    /// Names the ranks whose text differs from the text of rank 0, and the first line that differs.
    pub fn same(&self, variable: &str, own: &str) -> Result<()> {
        let all = self.gather(own.to_owned());
        let others: Vec<String> =
            all.iter().enumerate().filter(|(_, other)| **other != all[0]).map(|(rank, _)| rank.to_string()).collect();
        match others.is_empty() {
            true => Ok(()),
            false => Err(anyhow!("{variable} of rank {} differs from that of rank 0{}", others.join(", "), difference(&all))),
        }
    }

    /// Runs a function that may take long and makes no collective call. Meanwhile the other ranks learn that this rank is
    /// working.
    pub fn at_work<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        if self.is_alone() {
            return run();
        }
        std::thread::scope(|scope| {
            let (done, waits) = mpsc::channel::<()>();
            let work = scope.spawn(move || {
                // Dropped at the end, even after a panic.
                let _done = done;
                run()
            });
            while waits.recv_timeout(BEAT) == Err(mpsc::RecvTimeoutError::Timeout) {
                self.beat();
            }
            work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Tells the other ranks that this rank is working, so that they continue to wait for it.
    pub fn beat(&self) {
        self.group.beat();
    }
}

/// Returns the first line in which a text differs from the first text.
fn difference(all: &[String]) -> String {
    let Some(other) = all.iter().find(|other| **other != all[0]) else {
        return String::new();
    };
    let differing = all[0].lines().zip(other.lines()).find(|(first, other)| first != other);
    differing.map_or(String::new(), |(first, other)| format!(": `{}` there, `{}` here", other.trim(), first.trim()))
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}

impl RankError {
    fn from_error(error: &Error) -> Self {
        let text = format!("{error:#}");
        if error.is::<Interrupted>() { Self::Interrupted(text) } else { Self::Failed(text) }
    }

    fn into_error(self) -> Error {
        match self {
            Self::Interrupted(text) => Interrupted(text).into(),
            Self::Failed(text) => anyhow!(text),
        }
    }
}

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Interrupted(text) | Self::Failed(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;
    use crate::threads;

    /// Returns the result of each of three ranks.
    fn on_three<T: Send>(run: impl Fn(&Ranks) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let run = &run;
            let ranks: Vec<_> = threads(3).into_iter().map(|group| scope.spawn(move || run(&Ranks::new(group)))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn values_are_gathered_bit_by_bit() {
        let own = |ranks: &Ranks| vec![f32::NAN, -0.0, 1e-45, 0.1 + ranks.rank() as f32];
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let all = on_three(|ranks| (bits(ranks.concat(own(ranks))), bits(ranks.concat_f32s(own(ranks)))));
        let expected: Vec<u32> = (0..3).flat_map(|rank| bits(vec![f32::NAN, -0.0, 1e-45, 0.1 + rank as f32])).collect();
        assert!(all.iter().all(|(values, numbers)| *values == expected && *numbers == expected));
        // Numbers whose JSON is null, and values other than numbers, arrive too.
        let odd = (f64::NEG_INFINITY, Some(serde_json::json!({"a": [1, 2.5, null]})), "x".to_owned());
        assert!(on_three(|ranks| ranks.gather(odd.clone())).iter().all(|all| all.iter().all(|one| *one == odd)));
        assert_eq!(on_three(|ranks| ranks.any(ranks.rank() == 2)), [true; 3]);
    }

    #[test]
    fn errors_are_those_of_all_ranks() {
        let fails = |ranks: &Ranks, failing: &[usize]| -> Result<()> {
            ensure!(!failing.contains(&ranks.rank()), "no file");
            Ok(())
        };
        let text = |result: Result<()>| result.err().map(|error| error.to_string());
        let agreed = |failing: &'static [usize]| on_three(move |ranks| text(ranks.agree(fails(ranks, failing))));
        assert_eq!(agreed(&[]), [None, None, None]);
        assert!(agreed(&[1]).iter().all(|error| error.as_deref() == Some("rank 1: no file")));
        assert!(agreed(&[0, 1, 2]).iter().all(|error| error.as_deref() == Some("no file")), "said once");
        let stopped = on_three(|ranks| {
            let own = if ranks.rank() == 1 { Err(Interrupted::unfinished().into()) } else { Ok(()) };
            ranks.agree(own).is_err_and(|error| error.is::<Interrupted>())
        });
        assert_eq!(stopped, [true; 3]);
        let same = on_three(|ranks| text(ranks.same("the text", if ranks.rank() == 2 { "a\nc" } else { "a\nb" })));
        let expected = "the text of rank 2 differs from that of rank 0: `c` there, `b` here";
        assert!(same.iter().all(|error| error.as_deref() == Some(expected)), "{same:?}");
    }

    #[test]
    fn rank_0_alone_acts_and_all_know_the_result() {
        let acted = on_three(|ranks| ranks.first(|| Ok(format!("by rank {}", ranks.rank()))).unwrap());
        assert_eq!(acted, ["by rank 0"; 3]);
        let failed = on_three(|ranks| ranks.first(|| -> Result<()> { Err(anyhow!("full")) }).unwrap_err().to_string());
        assert_eq!(failed, ["full"; 3]);
    }

    /// Rank 0 gets the parts of all ranks, in their order; if it fails, no other rank keeps waiting.
    #[test]
    fn parts_are_handed_over_while_rank_0_leads() {
        let part = |rank: usize, round: usize| vec![(10 * round + rank) as f32; rank];
        let led = on_three(|ranks| {
            let lead = || {
                let all: Vec<Vec<f32>> = (1..3).map(|round| ranks.ask(round, &part(0, round), vec![0, 1, 2])).collect();
                ensure!(all == [[11.0, 12.0, 12.0], [21.0, 22.0, 22.0]], "{all:?}");
                Err::<(), _>(anyhow!("the disk is full"))
            };
            ranks.lead(lead, |round: &usize| part(ranks.rank(), *round)).unwrap_err().to_string()
        });
        assert_eq!(led, ["the disk is full"; 3]);
    }
}
