//! Runs work on untrusted input, such as the files of a model, on a separate thread with limits on memory, time and stack. A
//! panic in a dependency becomes an error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::limited_memory::limit;
use crate::platform;

/// The limits of some work.
#[derive(Clone, Copy, Debug)]
pub struct WorkLimits {
    /// Bytes that the work may allocate, in addition to its input. Only allocations on the work's own thread count, and only
    /// where [`LimitedMemory`](super::limited_memory::LimitedMemory) is the global allocator.
    pub memory: usize,
    /// CPU time of the work's thread, and thirty times as long on the clock; `None` = no limit. Where the system does not
    /// tell a thread's CPU time, time on the clock.
    pub time: Option<Duration>,
    /// Bytes of the stack. Unused parts take no memory.
    pub stack: usize,
}

impl WorkLimits {
    /// The limits of parsing a file. Time is not limited, since it grows with the file.
    pub const READING: Self = Self { memory: usize::MAX, time: None, stack: 64 << 20 };
}

/// The reason why work ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainedError {
    /// The work requested more than this many bytes of memory.
    Memory(usize),
    Time(Duration),
    /// The work panicked with this message.
    Panic(String),
    /// No thread could be started.
    NoThread(String),
    /// A nested task ([`part`]) exceeded its own limits; the message comes from that task.
    Part(String),
}

impl std::error::Error for ContainedError {}

impl fmt::Display for ContainedError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Memory(bytes) => write!(f, "it takes more than {} MiB of memory", bytes >> 20),
            Self::Time(time) => write!(f, "it takes longer than {} seconds", time.as_secs_f64()),
            Self::Panic(message) => write!(f, "it cannot be read and is probably damaged: {message}"),
            Self::NoThread(message) => write!(f, "no thread could be started to read it: {message}"),
            Self::Part(message) => f.write_str(message),
        }
    }
}

/// Time that a thread polls for its work before it sleeps: waking a thread takes tens of microseconds.
const AWAKE: Duration = Duration::from_micros(50);

/// On a loaded machine a thread gets only a part of a processor. Work that has a smaller part than this is not waited for.
const STARVED: u32 = 30;

/// Interval at which the waiting thread checks the limits.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of stack that work may have used before it runs a [`part`].
pub const BEFORE_PART: usize = 32 << 20;

/// Runs `work` on another thread and waits for it.
///
/// # Errors
/// If the work panics or exceeds its limits. After an exceeded limit, its thread and its memory remain until the process ends.
pub fn contained<T: Send + 'static>(limits: WorkLimits, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ContainedError> {
    let watch =
        Arc::new(Watch { stack: limits.stack, exceeded: Arc::default(), thread: OnceLock::new(), part: Mutex::default() });
    let (sender, receiver) = sync_channel(1);
    let watched = watch.clone();
    let run = move || {
        let bounds = limit(limits.memory, watched.exceeded.clone());
        CONTAINED.set(true);
        _ = watched.thread.set(THREAD.with(Clone::clone));
        WATCH.replace(Some(watched));
        let result = catch_unwind(AssertUnwindSafe(work));
        WATCH.take();
        // Memory that is allocated from here on does not belong to the work: the panic printer may have kept some.
        drop(bounds);
        let result = result.map_err(|panic| ContainedError::Panic(message(&*panic)));
        // The waiting thread may have given up.
        _ = sender.send(result);
    };
    let worker = Worker::idle_or_new(limits.stack)?;
    worker.start(Box::new(run))?;
    let mut times = RunningTime::new();
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
            Err(RecvTimeoutError::Disconnected) => return Err(ContainedError::Panic("its thread ended".to_owned())),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(error) = watch.exceeded_limit(&limits, &mut times) {
                    return Err(error);
                }
            }
        }
    }
}

/// Runs a part of contained work with its own limits on the same thread: rendering a template takes less time than a change of
/// threads. Outside of contained work, or with too small a stack, calls [`contained`].
///
/// # Errors
/// The errors of [`contained`] if the part panics or had to change threads. If a part on the same thread exceeds its limits, the
/// whole work ends with [`ContainedError::Part`] and the message from `exceeds`.
pub fn part<T: Send + 'static>(
    limits: WorkLimits,
    exceeds: impl FnOnce(ContainedError) -> String + Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ContainedError> {
    let here = WATCH.with_borrow(|watch| watch.clone().filter(|watch| watch.stack >= limits.stack + BEFORE_PART));
    let Some(watch) = here else { return contained(limits, work) };
    *watch.part() = Some(RunningPart { limits, times: RunningTime::new(), exceeds: Box::new(exceeds) });
    let bounds = limit(limits.memory, watch.exceeded.clone());
    let result = catch_unwind(AssertUnwindSafe(work));
    drop(bounds);
    *watch.part() = None;
    result.map_err(|panic| ContainedError::Panic(message(&*panic)))
}

/// State of contained work, shared by its thread and the waiting thread.
struct Watch {
    stack: usize,
    /// True once the memory limit is exceeded; the thread then stops for good.
    exceeded: Arc<AtomicBool>,
    /// The name of the thread, if the system tells its CPU time.
    thread: OnceLock<Option<Arc<Path>>>,
    part: Mutex<Option<RunningPart>>,
}

/// The part of contained work that is running.
struct RunningPart {
    limits: WorkLimits,
    times: RunningTime,
    exceeds: Box<dyn FnOnce(ContainedError) -> String + Send>,
}

impl Watch {
    fn part(&self) -> MutexGuard<'_, Option<RunningPart>> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limit that the work or its current part exceeds.
    fn exceeded_limit(&self, limits: &WorkLimits, times: &mut RunningTime) -> Option<ContainedError> {
        let mut part = self.part();
        let exceeded = self.exceeded.load(Ordering::Acquire);
        let cpu_time = self.thread.get().and_then(|thread| platform::thread_cpu_time(thread.as_ref()?));
        if let Some(error) = part.as_mut().and_then(|part| part.limits.exceeded(exceeded, part.times.passed(cpu_time))) {
            return part.take().map(|part| ContainedError::Part((part.exceeds)(error)));
        }
        limits.exceeded(exceeded, times.passed(cpu_time))
    }
}

/// The times since some work began.
struct RunningTime {
    start: Instant,
    /// CPU time of the thread when the waiting thread first looked, at most [`LOOK`] after the start.
    cpu_time: Option<Duration>,
}

impl RunningTime {
    fn new() -> Self {
        Self { start: Instant::now(), cpu_time: None }
    }

    /// Returns the time that counts for the limit.
    fn passed(&mut self, now: Option<Duration>) -> Duration {
        let clock = self.start.elapsed();
        let Some(now) = now else { return clock };
        let worked = now.saturating_sub(*self.cpu_time.get_or_insert(now));
        worked.max(clock / STARVED)
    }
}

impl WorkLimits {
    fn exceeded(&self, no_memory: bool, passed: Duration) -> Option<ContainedError> {
        let late = self.time.filter(|time| passed > *time);
        no_memory.then_some(ContainedError::Memory(self.memory)).or(late.map(ContainedError::Time))
    }
}

/// Polls a channel for [`AWAKE`]. Returns `None` at once on a single processor, which the sender needs.
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

/// A thread that waits for work and is reused afterwards.
struct Worker {
    stack: usize,
    work: SyncSender<Work>,
}

static RESTING: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

impl Worker {
    fn idle_or_new(stack: usize) -> Result<Self, ContainedError> {
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
        spawned.map_err(|error| ContainedError::NoThread(error.to_string()))?;
        Ok(Self { stack, work: sender })
    }

    fn start(&self, work: Work) -> Result<(), ContainedError> {
        self.work.send(work).map_err(|_| ContainedError::Panic("its thread ended".to_owned()))
    }

    /// Returns the thread to the pool.
    fn rest(self) {
        RESTING.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }
}

/// Runs work that borrows its input, and turns a panic into an error. Sets no limits.
///
/// # Errors
/// If the work panics.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, ContainedError> {
    let before = CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| ContainedError::Panic(message(&*panic)));
    CONTAINED.set(before);
    result
}

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
    /// The name of this thread, if the system tells its CPU time.
    static THREAD: Option<Arc<Path>> = platform::own_thread().map(Arc::from);
    /// The contained work of this thread.
    static WATCH: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

/// Returns true inside [`contained`] and [`caught`] work, whose panics need no printing because they become errors.
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

    const LIMITS: WorkLimits = WorkLimits { memory: 8 << 20, time: Some(Duration::from_millis(200)), stack: 1 << 20 };

    /// Works until it is given up, but not for ever: its thread remains.
    fn busy() {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            hint::spin_loop();
        }
    }

    #[test]
    fn exceeding_a_limit_is_an_error_and_the_process_survives() {
        assert_eq!(contained(LIMITS, || vec![1_u8; 7 << 20].len()), Ok(7 << 20));
        // Freed memory can be taken again.
        assert_eq!(contained(LIMITS, || (0..100).map(|_| vec![1_u8; 7 << 20].len()).sum()), Ok(700_usize << 20));
        assert_eq!(contained(LIMITS, || vec![1_u8; 9 << 20].len()), Err(ContainedError::Memory(8 << 20)));
        let doubled = || (0..60).fold(vec![1_u8], |bytes, _| [&bytes[..], &bytes].concat()).len();
        assert_eq!(contained(LIMITS, doubled), Err(ContainedError::Memory(8 << 20)));
        assert_eq!(contained(LIMITS, busy), Err(ContainedError::Time(Duration::from_millis(200))));
        // Work that waits, or gets no processor, has more time on the clock.
        let pause = |time| move || thread::sleep(Duration::from_millis(time));
        let short = WorkLimits { time: Some(Duration::from_millis(10)), ..LIMITS };
        assert_eq!(contained(short, pause(100)), Ok(()));
        assert_eq!(contained(short, pause(3000)), Err(ContainedError::Time(Duration::from_millis(10))));
        let failing = || -> usize { panic!("index {}", 7) };
        assert_eq!(contained(WorkLimits { time: None, ..LIMITS }, failing), Err(ContainedError::Panic("index 7".to_owned())));
        assert_eq!(caught(|| -> usize { panic!("index {}", 8) }), Err(ContainedError::Panic("index 8".to_owned())));
        assert!(!is_contained());
    }

    #[test]
    fn a_part_has_its_own_limits_and_stays_on_its_thread() {
        const WHOLE: WorkLimits = WorkLimits { memory: usize::MAX, time: None, stack: 64 << 20 };
        let here = || format!("{:?}", thread::current().id());
        let exceeds = |error: ContainedError| format!("the part failed: {error}");
        let taken = move |bytes: usize| part(LIMITS, exceeds, move || vec![1_u8; bytes].len());
        // Each part has the full limit, and the work itself has none.
        let parts = move || (here(), part(LIMITS, exceeds, here), (0..9).map(|_| taken(7 << 20)).collect(), vec![1_u8; 9 << 20]);
        let (outer, inner, sizes, _): (_, _, Result<Vec<usize>, ContainedError>, _) = contained(WHOLE, parts).unwrap();
        assert_eq!((inner, sizes), (Ok(outer), Ok(vec![7 << 20; 9])));
        let error = contained(WHOLE, move || taken(9 << 20)).unwrap_err();
        assert_eq!(error.to_string(), "the part failed: it takes more than 8 MiB of memory");
        let late = contained(WHOLE, move || part(LIMITS, exceeds, busy)).unwrap_err();
        assert_eq!(late.to_string(), "the part failed: it takes longer than 0.2 seconds");
        // Outside of contained work, or with too small a stack, the part is contained itself. A panic is an error of the part.
        let failing = || -> usize { panic!("index {}", 7) };
        assert_eq!(part(LIMITS, exceeds, || vec![1_u8; 9 << 20].len()), Err(ContainedError::Memory(8 << 20)));
        assert_eq!(contained(LIMITS, move || taken(9 << 20)), Ok(Err(ContainedError::Memory(8 << 20))));
        assert_eq!(
            contained(WHOLE, move || part(WorkLimits { time: None, ..LIMITS }, exceeds, failing)),
            Ok(Err(ContainedError::Panic("index 7".to_owned())))
        );
    }
}
