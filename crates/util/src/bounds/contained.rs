//! Work on input of others, such as the files of a model, on a thread of its own: memory, time and stack are bounded, and a panic
//! in a dependency becomes an error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::limited_memory::limit;

/// The bounds of work.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes that it may take beside what it is given. They are counted where
    /// [`LimitedMemory`](super::limited_memory::LimitedMemory) is the global allocator, and on the work's own thread.
    pub memory: usize,
    /// The time that it may take; `None` without a bound.
    pub time: Option<Duration>,
    /// The bytes of its stack. What is not used takes no memory.
    pub stack: usize,
}

impl Limits {
    /// The bounds of parsing a file: its time grows with its size, so there is none.
    pub const READING: Self = Self { memory: usize::MAX, time: None, stack: 64 << 20 };
}

/// The reason why work did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It asked for more memory than these bytes.
    Memory(usize),
    Time(Duration),
    /// It panicked, with this message.
    Panic(String),
    /// There was no thread for it.
    NoThread(String),
    /// A part of it, run by [`part`], exceeded bounds of its own; the message is that part's.
    Part(String),
}

impl std::error::Error for Excess {}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "it takes more than {} MiB of memory", bytes >> 20),
            Self::Time(time) => write!(f, "it takes longer than {} seconds", time.as_secs_f64()),
            Self::Panic(message) => write!(f, "it cannot be read, and is probably damaged: {message}"),
            Self::NoThread(message) => write!(f, "there is no thread to read it: {message}"),
            Self::Part(message) => f.write_str(message),
        }
    }
}

/// The time for which a thread looks for what it waits for before it sleeps: to wake a thread takes some tens of microseconds.
const AWAKE: Duration = Duration::from_micros(50);

/// The interval at which a waiting thread looks whether a bound was exceeded.
const LOOK: Duration = Duration::from_millis(20);

/// The bytes of stack that work may have used when it comes to a [`part`].
pub const BEFORE_PART: usize = 32 << 20;

/// Runs `work` on another thread and waits for it.
///
/// # Errors
/// If the work panics, or exceeds its limits: then its thread goes on until the process ends, or waits for that, and keeps what it
/// has taken.
pub fn contained<T: Send + 'static>(limits: Limits, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Excess> {
    let watch = Arc::new(Watch { stack: limits.stack, exceeded: Arc::default(), part: Mutex::default() });
    let (sender, receiver) = sync_channel(1);
    let watched = watch.clone();
    let run = move || {
        let bounds = limit(limits.memory, watched.exceeded.clone());
        CONTAINED.set(true);
        WATCH.replace(Some(watched));
        let result = catch_unwind(AssertUnwindSafe(work));
        WATCH.take();
        // From here on memory is not the work's: what printed a panic may have kept some.
        drop(bounds);
        let result = result.map_err(|panic| Excess::Panic(message(&*panic)));
        // Whoever waited may have given up.
        _ = sender.send(result);
    };
    let worker = Worker::of(limits.stack)?;
    worker.start(Box::new(run))?;
    let start = Instant::now();
    if let Some(result) = soon(&receiver) {
        worker.rest();
        return result;
    }
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => {
                worker.rest();
                return result;
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Excess::Panic("its thread ended".to_owned())),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(excess) = watch.excess(&limits, start) {
                    return Err(excess);
                }
            }
        }
    }
}

/// Runs a part of contained work within bounds of its own, on the same thread: a template is rendered for every row, and to change
/// threads takes longer than that. Work that is not contained, or has too small a stack, becomes so.
///
/// # Errors
/// The errors of [`contained`] if the part panics, or had to change threads. Otherwise, if the part exceeds its limits, the whole
/// work ends with [`Excess::Part`] and what `exceeds` makes of the excess.
pub fn part<T: Send + 'static>(
    limits: Limits,
    exceeds: impl FnOnce(Excess) -> String + Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Excess> {
    let here = WATCH.with_borrow(|watch| watch.clone().filter(|watch| watch.stack >= limits.stack + BEFORE_PART));
    let Some(watch) = here else { return contained(limits, work) };
    *watch.part() = Some(Part { limits, start: Instant::now(), exceeds: Box::new(exceeds) });
    let bounds = limit(limits.memory, watch.exceeded.clone());
    let result = catch_unwind(AssertUnwindSafe(work));
    drop(bounds);
    *watch.part() = None;
    result.map_err(|panic| Excess::Panic(message(&*panic)))
}

/// The state of contained work that its thread and the waiting one share.
struct Watch {
    stack: usize,
    /// True when there is no memory left; the thread does not go on.
    exceeded: Arc<AtomicBool>,
    part: Mutex<Option<Part>>,
}

/// A part of contained work that is being done.
struct Part {
    limits: Limits,
    start: Instant,
    exceeds: Box<dyn FnOnce(Excess) -> String + Send>,
}

impl Watch {
    fn part(&self) -> MutexGuard<'_, Option<Part>> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limit that the work, begun at `start`, or its present part exceeds.
    fn excess(&self, limits: &Limits, start: Instant) -> Option<Excess> {
        let mut part = self.part();
        let exceeded = self.exceeded.load(Ordering::Acquire);
        if let Some(excess) = part.as_ref().and_then(|part| part.limits.excess(exceeded, part.start)) {
            return part.take().map(|part| Excess::Part((part.exceeds)(excess)));
        }
        limits.excess(exceeded, start)
    }
}

impl Limits {
    fn excess(&self, no_memory: bool, start: Instant) -> Option<Excess> {
        let late = self.time.filter(|time| start.elapsed() > *time);
        no_memory.then_some(Excess::Memory(self.memory)).or(late.map(Excess::Time))
    }
}

/// What a channel receives within [`AWAKE`]; nothing on a single processor, which the sender needs.
fn soon<T>(receiver: &Receiver<T>) -> Option<T> {
    static SEVERAL: LazyLock<bool> =
        LazyLock::new(|| thread::available_parallelism().is_ok_and(|processors| processors.get() > 1));
    let start = Instant::now();
    while *SEVERAL && start.elapsed() < AWAKE {
        if let Ok(received) = receiver.try_recv() {
            return Some(received);
        }
        hint::spin_loop();
    }
    None
}

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for work. One that did its work is used again.
struct Worker {
    stack: usize,
    work: SyncSender<Work>,
}

static RESTING: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

impl Worker {
    fn of(stack: usize) -> Result<Self, Excess> {
        let mut resting = RESTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = resting.iter().position(|worker| worker.stack == stack) {
            return Ok(resting.swap_remove(at));
        }
        drop(resting);
        let (sender, receiver) = sync_channel::<Work>(1);
        let run = move || {
            while let Some(work) = soon(&receiver).or_else(|| receiver.recv().ok()) {
                work();
            }
        };
        let spawned = thread::Builder::new().name("contained".to_owned()).stack_size(stack).spawn(run);
        spawned.map_err(|error| Excess::NoThread(error.to_string()))?;
        Ok(Self { stack, work: sender })
    }

    fn start(&self, work: Work) -> Result<(), Excess> {
        self.work.send(work).map_err(|_| Excess::Panic("its thread ended".to_owned()))
    }

    /// Lets another use it.
    fn rest(self) {
        RESTING.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }
}

/// Runs work that borrows what it reads, and turns its panic into an error; nothing else is bounded.
///
/// # Errors
/// If the work panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Excess> {
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Excess::Panic(message(&*panic)));
    CONTAINED.set(before);
    result
}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// The contained work that this thread does.
    static WATCH: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// True in [`contained`] and [`caught`] work: its panic becomes an error, so that nobody need print it.
pub fn is_contained() -> bool {
    CONTAINED.get()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limited_memory::LimitedMemory;

    #[global_allocator]
    static ALLOCATOR: LimitedMemory<std::alloc::System> = LimitedMemory(std::alloc::System);

    const LIMITS: Limits = Limits { memory: 8 << 20, time: Some(Duration::from_millis(200)), stack: 1 << 20 };

    #[test]
    fn what_exceeds_a_limit_is_an_error_and_the_process_goes_on() {
        assert_eq!(contained(LIMITS, || vec![1_u8; 7 << 20].len()), Ok(7 << 20));
        // Memory that is freed can be taken again.
        assert_eq!(contained(LIMITS, || (0..100).map(|_| vec![1_u8; 7 << 20].len()).sum()), Ok(700_usize << 20));
        assert_eq!(contained(LIMITS, || vec![1_u8; 9 << 20].len()), Err(Excess::Memory(8 << 20)));
        let doubled = || (0..60).fold(vec![1_u8], |bytes, _| [&bytes[..], &bytes].concat()).len();
        assert_eq!(contained(LIMITS, doubled), Err(Excess::Memory(8 << 20)));
        let endless = || {
            while std::hint::black_box(true) {
                thread::sleep(Duration::from_millis(1));
            }
        };
        assert_eq!(contained(LIMITS, endless), Err(Excess::Time(Duration::from_millis(200))));
        let failing = || -> usize { panic!("index {}", 7) };
        assert_eq!(contained(LIMITS, failing), Err(Excess::Panic("index 7".to_owned())));
        assert_eq!(caught(|| -> usize { panic!("index {}", 8) }), Err(Excess::Panic("index 8".to_owned())));
        assert!(!is_contained());
    }

    #[test]
    fn a_part_has_bounds_of_its_own_and_stays_on_its_thread() {
        const WHOLE: Limits = Limits { memory: usize::MAX, time: None, stack: 64 << 20 };
        let here = || format!("{:?}", thread::current().id());
        let exceeds = |excess: Excess| format!("the part failed: {excess}");
        let taken = move |bytes: usize| part(LIMITS, exceeds, move || vec![1_u8; bytes].len());
        // Each part may take as much as the ones before it, and the work as much as it likes.
        let parts = move || (here(), part(LIMITS, exceeds, here), (0..9).map(|_| taken(7 << 20)).collect(), vec![1_u8; 9 << 20]);
        let (whole, inner, sizes, _): (_, _, Result<Vec<usize>, Excess>, _) = contained(WHOLE, parts).unwrap();
        assert_eq!((inner, sizes), (Ok(whole), Ok(vec![7 << 20; 9])));
        let excess = contained(WHOLE, move || taken(9 << 20)).unwrap_err();
        assert_eq!(excess.to_string(), "the part failed: it takes more than 8 MiB of memory");
        let late = contained(WHOLE, move || part(LIMITS, exceeds, || thread::sleep(Duration::from_secs(2)))).unwrap_err();
        assert_eq!(late.to_string(), "the part failed: it takes longer than 0.2 seconds");
        // Outside of such work, and with a stack that is too small, it is contained itself; and a panic is its own error.
        let failing = || -> usize { panic!("index {}", 7) };
        assert_eq!(part(LIMITS, exceeds, || vec![1_u8; 9 << 20].len()), Err(Excess::Memory(8 << 20)));
        assert_eq!(contained(LIMITS, move || taken(9 << 20)), Ok(Err(Excess::Memory(8 << 20))));
        assert_eq!(contained(WHOLE, move || part(LIMITS, exceeds, failing)), Ok(Err(Excess::Panic("index 7".to_owned()))));
    }
}
