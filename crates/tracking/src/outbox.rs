//! A queue for a receiver that may be slow or unreachable: logging adds rows to it, and a separate thread delivers them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow, bail};

use super::{Ending, Exit, Metrics, StepTable, Tracker};

/// Number of rows that can wait; if there are more, the oldest are dropped.
const MAX_ROWS: usize = 100_000;
/// Longest time until the thread sees a new row, and until the end of the run sees a signal. Logging a row does not wake the
/// thread: on a busy machine, a wake-up costs the caller more than the row itself.
const POLL: Duration = Duration::from_millis(50);
/// Time between two messages about the number of rows left, while the end of the run waits for them.
const REPORT_INTERVAL: Duration = Duration::from_secs(5);
/// Longest pause between two attempts once the run has ended.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Metrics or table of one step.
#[derive(Debug)]
pub(super) struct QueuedRow {
    pub step: u64,
    pub time: SystemTime,
    pub content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Metrics(Metrics),
    Table(StepTable),
}

/// A failed delivery.
#[derive(Debug)]
pub(super) enum DeliveryError {
    /// A failure that may succeed on retry, such as a server that is down.
    Temporary(anyhow::Error),
    /// A failure that no retry can fix, with the number of lost rows.
    Permanent(usize, anyhow::Error),
}

/// Delivers rows. All of its methods run on the thread of the [`Outbox`].
pub(super) trait Transport: Send {
    /// Opens the transport; called before the first row. After [`DeliveryError::Permanent`], no row can be delivered.
    fn open(&mut self) -> Result<(), DeliveryError>;
    /// Returns the number of waiting rows, at least one, for the next call of [`send`](Self::send).
    fn batch_size(&self, waiting: &VecDeque<QueuedRow>) -> usize;
    /// Delivers rows. After [`DeliveryError::Temporary`] it is called again with the same rows.
    fn send(&mut self, rows: &[QueuedRow]) -> Result<(), DeliveryError>;
    /// Closes the transport; called after the last row.
    fn close(&mut self, exit: Exit) -> Result<(), DeliveryError>;
}

/// Pauses between attempts, and the longest waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryPolicy {
    /// Pause after the first of several failures in a row; each further pause is twice as long.
    pub first_pause: Duration,
    pub(crate) longest_pause: Duration,
    /// Longest wait at the end of the run while no row is delivered; shorter after a stop request ([`Ending`]).
    pub finish: Duration,
    /// Longest total wait at the end of the run, if rows are being delivered.
    pub total: Duration,
}

pub(super) const RETRY_POLICY: RetryPolicy = RetryPolicy {
    first_pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(30),
    finish: Duration::from_secs(30),
    total: Duration::from_secs(600),
};

#[derive(Default)]
struct State {
    rows: VecDeque<QueuedRow>,
    /// Number of rows taken from the queue and not delivered yet.
    under_way: usize,
    /// Number of rows lost since the last report; `why` is the reason of the first loss.
    lost: usize,
    why: Option<String>,
    /// Result of [`Transport::open`]; `None` until it has succeeded or failed for good.
    opened: Option<Result<(), String>>,
    /// True while the last attempt has failed and another will follow.
    failing: bool,
    /// Outcome of the run; `None` while it runs.
    exit: Option<Exit>,
    /// True once the thread has finished.
    done: bool,
    /// True once deliveries are not awaited any more.
    abandoned: bool,
}

impl State {
    fn lose(&mut self, rows: usize, why: impl FnOnce() -> String) {
        self.lost += rows;
        self.why.get_or_insert_with(why);
    }
}

struct Shared {
    name: &'static str,
    policy: RetryPolicy,
    state: Mutex<State>,
    changed: Condvar,
}

/// The queue, as seen by the thread that logs.
pub(super) struct Outbox {
    shared: Arc<Shared>,
    /// An object that is dropped together with the queue.
    _guard: Option<Box<dyn Send>>,
}

impl Tracker for Outbox {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.push(step, Content::Metrics(metrics.clone()))
    }

    fn table(&mut self, step: u64, table: &StepTable) -> Result<()> {
        self.push(step, Content::Table(table.clone()))
    }

    fn finish(&mut self, ending: &Ending) -> Result<()> {
        self.wait(ending)
    }
}

impl Outbox {
    /// Starts the thread, which opens the transport; see [`Self::opened`].
    pub(crate) fn start(name: &'static str, transport: impl Transport + 'static, policy: RetryPolicy) -> Result<Self> {
        let shared = Arc::new(Shared { name, policy, state: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let deliver = move || of_thread.deliver(transport);
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(deliver)
            .with_context(|| format!("cannot start the thread of {name}"))?;
        Ok(Self { shared, _guard: None })
    }

    /// Adds an object that is dropped together with the queue, for example one that kills a process.
    pub(crate) fn with(mut self, guard: impl Send + 'static) -> Self {
        self._guard = Some(Box::new(guard));
        self
    }

    /// Waits until the transport is open, or has failed and will retry; `false` if it is not open yet.
    ///
    /// # Errors
    /// If the transport failed to open for good ([`DeliveryError::Permanent`]).
    pub(crate) fn opened(&self, at_most: Duration) -> Result<bool> {
        let state = self.shared.wait(at_most, |state| state.opened.is_some() || state.failing);
        match &state.opened {
            Some(Err(why)) => Err(anyhow!(why.clone())),
            Some(Ok(())) => Ok(true),
            None => Ok(false),
        }
    }

    /// Adds a row to the queue without blocking.
    ///
    /// # Errors
    /// If rows were lost since the last call.
    fn push(&self, step: u64, content: Content) -> Result<()> {
        let row = QueuedRow { step, time: SystemTime::now(), content };
        let mut state = self.shared.lock();
        state.rows.push_back(row);
        if state.rows.len() > MAX_ROWS {
            state.rows.pop_front();
            state.lose(1, || format!("more than {MAX_ROWS} rows were waiting, and the oldest were dropped"));
        }
        match (std::mem::take(&mut state.lost), state.why.take()) {
            (0, None) => Ok(()),
            (lost, why) => bail!("{}: {}", count(lost, "lost"), why.unwrap_or_default()),
        }
    }

    /// Waits for the remaining rows, for a limited time.
    ///
    /// # Errors
    /// If rows were lost or are still waiting, or if the transport could not be closed.
    fn wait(&self, ending: &Ending) -> Result<()> {
        let Shared { name, policy, changed, .. } = &*self.shared;
        self.shared.lock().exit = Some(ending.exit);
        changed.notify_all();
        let mut reported = Instant::now();
        let (mut moved, mut before) = (reported, usize::MAX);
        let mut state = loop {
            let left = ending.time_left(policy.total).min(policy.finish.saturating_sub(moved.elapsed()));
            let state = self.shared.wait(left.min(POLL), |state| state.done);
            let waiting = state.rows.len() + state.under_way;
            if state.done || left.is_zero() {
                break state;
            }
            if waiting < before {
                (moved, before) = (Instant::now(), waiting);
            }
            if reported.elapsed() >= REPORT_INTERVAL {
                reported = Instant::now();
                let noun = match waiting {
                    0 => "is finishing".to_owned(),
                    1 => "1 row is left to deliver".to_owned(),
                    rows => format!("{rows} rows are left to deliver"),
                };
                drop(state);
                tracing::info!("{name}: {noun}; Ctrl-C does not wait for it");
            }
        };
        let waiting = state.rows.len() + state.under_way;
        let why = state.why.take();
        if !state.done {
            state.abandoned = true;
            changed.notify_all();
            let why = why.map_or(String::new(), |why| format!(": {why}"));
            bail!("{} within {:.0?} of the run's end{why}", count(waiting + state.lost, "not delivered"), ending.elapsed());
        }
        match (state.lost, why) {
            (0, None) => Ok(()),
            (0, Some(why)) => bail!(why),
            (lost, why) => bail!("{}: {}", count(lost, "lost"), why.unwrap_or_default()),
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.shared.lock().abandoned = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panic of another thread that held the lock does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, at_most: Duration, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, |state| !until(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn deliver(&self, mut transport: impl Transport) {
        let Some(opened) = self.retry(|| transport.open()) else { return };
        let refused = opened.err().map(|(_, why)| format!("{why:#}"));
        self.lock().opened = Some(refused.clone().map_or(Ok(()), Err));
        self.changed.notify_all();
        while let Some(rows) = self.next(|waiting| transport.batch_size(waiting)) {
            let delivered = match &refused {
                Some(why) => Err((rows.len(), anyhow!(why.clone()))),
                None => match self.retry(|| transport.send(&rows)) {
                    Some(delivered) => delivered,
                    None => return,
                },
            };
            let mut state = self.lock();
            state.under_way = 0;
            if let Err((lost, why)) = delivered {
                state.lose(lost, || format!("{why:#}"));
            }
        }
        let exit = self.lock().exit;
        let closed = exit.filter(|_| refused.is_none()).and_then(|exit| self.retry(|| transport.close(exit)));
        drop(transport);
        let mut state = self.lock();
        if let Some(Err((_, why))) = closed {
            state.lose(0, || format!("{why:#}"));
        }
        state.done = true;
        self.changed.notify_all();
    }

    /// Takes the rows to deliver next; `None` once the run has ended and no row is left.
    fn next(&self, batch_size: impl Fn(&VecDeque<QueuedRow>) -> usize) -> Option<Vec<QueuedRow>> {
        let mut state = self.lock();
        while state.rows.is_empty() && state.exit.is_none() && !state.abandoned {
            state = self.changed.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.rows.is_empty() || state.abandoned {
            return None;
        }
        let count = batch_size(&state.rows).clamp(1, state.rows.len());
        state.under_way = count;
        Some(state.rows.drain(..count).collect())
    }

    /// Repeats an attempt until it succeeds or fails for good; `None` if the result is not awaited any more.
    fn retry(&self, mut attempt: impl FnMut() -> Result<(), DeliveryError>) -> Option<Result<(), (usize, anyhow::Error)>> {
        let mut pause = self.policy.first_pause;
        loop {
            let tried = attempt();
            let mut state = self.lock();
            let why = match tried {
                Err(DeliveryError::Temporary(why)) => why,
                tried => {
                    if std::mem::take(&mut state.failing) {
                        tracing::info!("{} can be reached again", self.name);
                        if state.lost == 0 {
                            state.why = None;
                        }
                    }
                    return Some(match tried {
                        Err(DeliveryError::Permanent(lost, why)) => Err((lost, why)),
                        _ => Ok(()),
                    });
                }
            };
            if !std::mem::replace(&mut state.failing, true) {
                tracing::warn!("{} cannot be reached, so rows wait until it can: {why:#}", self.name);
            }
            self.changed.notify_all();
            let ended = state.exit.is_some();
            if ended {
                state.why = Some(format!("{why:#}"));
            }
            let at_most = if ended { pause.min(LAST_PAUSE) } else { pause };
            // Once the run ends, the next attempt follows at once.
            let idle = |state: &mut State| !state.abandoned && (ended || state.exit.is_none());
            let waited = self.changed.wait_timeout_while(state, at_most, idle);
            if waited.unwrap_or_else(PoisonError::into_inner).0.abandoned {
                return None;
            }
            pause = (pause * 2).min(self.policy.longest_pause);
        }
    }
}

fn count(rows: usize, noun: &str) -> String {
    match rows {
        0 => format!("the end of the run was {noun}"),
        1 => format!("1 row was {noun}"),
        rows => format!("{rows} rows were {noun}"),
    }
}
