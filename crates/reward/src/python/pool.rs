//! Worker processes that handle one request at a time each. They are started on demand, and replaced when they are lost.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::options::{CodeSource, PoolOptions, Signature};
use super::questions::Questions;
use crate::math_verify::{self, MathVerify};
use crate::reward_error::{RewardError, RewardFailure};
use crate::start::cannot_verify;
use burnish_python::message::WorkerMessage;
use burnish_python::process::{MAX_BYTES, MAX_VALUES, Worker, WorkerError};
use burnish_python::words::Words;
use burnish_python::{MODULES, PROCESS, VALUES, environment, message};
use burnish_util::suggest::did_you_mean;

/// Code of a worker.
static CODE: LazyLock<String> = LazyLock::new(|| {
    let stand_ins = [include_str!("verl_scorers.py"), include_str!("verl.py")];
    let columns = [include_str!("columns.py"), include_str!("policy_loss.py")];
    let own = [include_str!("results.py"), include_str!("styles.py")].into_iter().chain(stand_ins).chain(columns);
    [PROCESS, VALUES, MODULES].into_iter().chain(own).chain([include_str!("worker.py")]).collect::<Vec<_>>().join("\n\n")
});
/// Names of the files and settings in messages.
static WORDS: Words = Words {
    file: "a reward file",
    files: "reward files",
    python: "reward.python",
    pass_env: "reward.pass_env",
    memory_limit_mb: "reward.memory_limit_mb",
    cpu_limit: "reward.cpu_limit",
};
/// Interval at which a thread that waits for a free worker checks for an interrupt.
const SLICE: Duration = Duration::from_millis(50);

/// Workers that run the same code, and the functions of this code.
pub struct Pool {
    source: CodeSource,
    options: PoolOptions,
    environment: Vec<(OsString, OsString)>,
    /// First line that a worker gets, with its setup.
    setup: Vec<u8>,
    /// Limits on processor time in seconds: of a start, and of a call.
    cpu: (u64, u64),
    functions: Vec<Signature>,
    questions: Questions,
    workers: Mutex<Workers>,
    freed: Condvar,
    /// See [`Pool::renew`].
    salt: AtomicU64,
    printed: AtomicUsize,
}

#[derive(Default)]
struct Workers {
    idle: Vec<Worker>,
    busy: usize,
}

/// A place in the pool. When it is dropped, it becomes free again, with its worker if the worker is still usable.
struct PoolPlace<'a> {
    pool: &'a Pool,
    worker: Option<Worker>,
}

impl Drop for PoolPlace<'_> {
    fn drop(&mut self) {
        let mut workers = self.pool.workers();
        workers.busy -= 1;
        workers.idle.extend(self.worker.take());
        self.pool.freed.notify_one();
    }
}

impl Pool {
    /// Starts one worker, which loads the code and reports its functions.
    ///
    /// # Errors
    /// If the functions cannot be called: a missing file, function or interpreter, an error in the file, a parameter without an
    /// argument, or a start that takes too long.
    pub fn start(source: CodeSource, options: PoolOptions) -> Result<Self> {
        ensure!(options.num_workers > 0, "reward.num_workers must be at least 1");
        let named = !matches!(&source, CodeSource::File { names, .. } if names.is_empty());
        ensure!(named, "custom_reward_function.name does not name a function");
        let environment = environment::for_workers(&options.pass_env, &WORDS)?;
        // Without a limit set by the user, the default is high: it serves only to end a hanging worker whose trainer was killed.
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let hung = |timeout: Duration| timeout.as_secs().max(1).saturating_mul(cores).min(u64::from(u32::MAX));
        let cpu = (hung(options.start_timeout), options.cpu_limit.unwrap_or(hung(options.timeout)));
        let setup = setup(&source, &options, cpu);
        let questions = Questions::new(math_verify(&options));
        let (workers, freed, salt, printed) = Default::default();
        let functions = Vec::new();
        let mut pool = Self { source, options, environment, setup, cpu, functions, questions, workers, freed, salt, printed };
        let (worker, functions) = pool.start_worker()?;
        pool.functions = functions;
        if let CodeSource::File { names, .. } = &pool.source {
            pool.functions.iter_mut().zip(names).for_each(|(function, name)| function.name.clone_from(name));
        }
        pool.workers().idle.push(worker);
        Ok(pool)
    }

    /// Returns the functions of the code, under the names and in the order of the request.
    pub fn functions(&self) -> &[Signature] {
        &self.functions
    }

    /// Calls the function with this index in [`Self::functions`] in a free worker and returns its reply: `scores`, or the
    /// returned `value` for [`CodeSource::BuiltIn`]. Equal arguments get equal random seeds.
    ///
    /// # Errors
    /// [`RewardError`] as the root cause if the function raised an error, returned something that is not a reward, took too long,
    /// or died. Also if the run is interrupted.
    pub fn call(&self, function: usize, arguments: &impl Serialize) -> Result<Value> {
        let name = &self.functions.get(function).context("no function of a reward file has this index")?.name;
        Ok(self.exchange(name, &self.request(function, arguments, &[])?, 0)?.0)
    }

    /// Like [`Self::call`], with columns of floats in addition to the arguments. Returns the reply with at most `max` floats of
    /// its columns.
    ///
    /// # Errors
    /// The errors of [`Self::call`].
    pub(crate) fn call_with_columns(
        &self,
        function: usize,
        arguments: &impl Serialize,
        columns: &[&[f32]],
        max: usize,
    ) -> Result<(Value, Vec<f32>)> {
        let name = &self.functions.get(function).context("no function of a Python file has this index")?.name;
        self.exchange(name, &self.request(function, arguments, columns)?, max)
    }

    /// Ends the free workers and starts another, whose code is as new. Later calls get other random seeds, unless `salt` is 0.
    ///
    /// # Errors
    /// If the worker cannot be started.
    pub fn renew(&self, salt: u64) -> Result<()> {
        self.workers().idle.clear();
        self.salt.store(salt, Ordering::Relaxed);
        let worker = self.start_worker()?.0;
        self.workers().idle.push(worker);
        Ok(())
    }

    /// Returns the number of lines that the functions printed during calls.
    pub fn printed_lines(&self) -> usize {
        self.printed.load(Ordering::Relaxed)
    }

    fn request(&self, function: usize, arguments: &impl Serialize, columns: &[&[f32]]) -> Result<Vec<u8>> {
        message::request(function, arguments, columns, self.salt.load(Ordering::Relaxed))
    }

    /// Sends a request to a free worker and returns the reply, with at most `max` floats of columns.
    fn exchange(&self, function: &str, request: &[u8], max: usize) -> Result<(Value, Vec<f32>)> {
        let mut seat = self.seat()?;
        let Some(worker) = &mut seat.worker else { bail!("a seat without a worker") };
        let reply = match self.converse(worker, request, max.saturating_mul(4), self.options.timeout) {
            Ok(reply) => {
                self.printed.fetch_add(worker.take_printed_lines(), Ordering::Relaxed);
                reply
            }
            Err(lost) => {
                let error = self.lost(lost, worker, function);
                seat.worker = None;
                return Err(error);
            }
        };
        let (line, reply) = reply;
        let line = line.context("the reply of a reward worker is not JSON")?;
        let Some(error) = line.get("error") else { return Ok((line, reply.numbers())) };
        if max > 0 {
            // The worker may not have read the columns if memory was short.
            seat.worker = None;
        }
        Err(self.raised(error))
    }

    /// Sends a message to a worker, answers its questions, and returns its reply as JSON and as received. The time for parsing
    /// counts.
    fn converse(
        &self,
        worker: &mut Worker,
        message: &[u8],
        columns: usize,
        timeout: Duration,
    ) -> Result<(serde_json::Result<Value>, WorkerMessage), WorkerError> {
        let started = Instant::now();
        let mut reply = worker.ask(message, columns, timeout, &self.options.interrupt)?;
        while let Some(answer) = self.questions.answer(&reply.line) {
            let left = timeout.saturating_sub(started.elapsed());
            reply = worker.ask(&answer, columns, left, &self.options.interrupt)?;
        }
        let parsed = serde_json::from_slice(&reply.line);
        match started.elapsed() < timeout {
            true => Ok((parsed, reply)),
            false => Err(WorkerError::TimedOut(String::new())),
        }
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a living worker: a free one, a new one, or the next that becomes free.
    fn seat(&self) -> Result<PoolPlace<'_>> {
        let mut workers = self.workers();
        loop {
            let idle = workers.idle.pop();
            if idle.is_some() || workers.busy < self.options.num_workers {
                workers.busy += 1;
                drop(workers);
                let mut seat = PoolPlace { pool: self, worker: idle };
                if seat.worker.as_ref().is_some_and(Worker::is_dead) {
                    tracing::warn!("a worker of {} died while it was idle", self.source.title());
                    seat.worker = None;
                }
                if seat.worker.is_none() {
                    seat.worker = Some(self.start_worker()?.0);
                }
                return Ok(seat);
            }
            self.options.interrupt.check()?;
            workers = self.freed.wait_timeout(workers, SLICE).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn start_worker(&self) -> Result<(Worker, Vec<Signature>)> {
        let options = &self.options;
        let title = self.source.title();
        let mut worker = Worker::spawn(&options.python, &CODE, &self.environment, &WORDS)
            .map_err(|error| self.failure(RewardFailure::Crash, &format!("{error:#}")))?;
        let reply = match self.converse(&mut worker, &self.setup, 0, options.start_timeout) {
            Ok((parsed, _)) => parsed,
            Err(WorkerError::Interrupted(interrupted)) => return Err(interrupted),
            Err(WorkerError::TimedOut(place)) => {
                let seconds = options.start_timeout.as_secs_f64();
                let text = format!("loading took longer than {seconds} s (reward.start_timeout){}", Words::at(&place));
                return Err(self.failure(RewardFailure::Timeout, &text));
            }
            Err(lost) => {
                let text = format!("the worker {} while it was loaded{}", died(&lost, self.cpu.0), worker.last_words());
                return Err(self.failure(RewardFailure::Crash, &text));
            }
        };
        let reply = reply.context("the reward worker's first message is not JSON")?;
        if let Some(error) = reply.get("error") {
            return Err(self.raised(error));
        }
        if let Some(missing) = reply["missing"].as_str() {
            let names: Vec<&str> = reply["functions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let hint = did_you_mean(missing, names.iter().copied());
            let names = if names.is_empty() { "no functions".to_owned() } else { names.join(", ") };
            bail!("{title} has no {missing} ({}); it has {names}.{hint}", self.source.name_key());
        }
        let functions = reply["functions"].as_array().context("the reward worker's first message has no functions")?;
        let functions: Option<Vec<Signature>> = functions.iter().map(Signature::read).collect();
        Ok((worker, functions.context("the reward worker's first message has a function of unknown style")?))
    }

    /// Returns the error that a worker reported.
    fn raised(&self, error: &Value) -> anyhow::Error {
        self.failure(RewardFailure::Exception, error.as_str().unwrap_or_default())
    }

    fn lost(&self, lost: WorkerError, worker: &Worker, function: &str) -> anyhow::Error {
        match lost {
            WorkerError::Interrupted(interrupted) => interrupted,
            WorkerError::TimedOut(place) => {
                let seconds = self.options.timeout.as_secs_f64();
                let text = format!("{function} took longer than {seconds} s (reward.timeout){}", Words::at(&place));
                self.failure(RewardFailure::Timeout, &text)
            }
            lost => {
                let died = died(&lost, self.cpu.1);
                self.failure(RewardFailure::Crash, &format!("{function} failed: its process {died}{}", worker.last_words()))
            }
        }
    }

    /// Returns a [`RewardError`], with advice if its text suggests any.
    fn failure(&self, kind: RewardFailure, text: &str) -> anyhow::Error {
        let title = self.source.title();
        let starts_with_trace = text.starts_with("Traceback");
        let mut message = if starts_with_trace { format!("{title} failed:\n{text}") } else { format!("{title}: {text}") };
        message += &WORDS.memory_hint(text, self.options.memory_limit_mb);
        message += &environment::hint(text, &self.options.pass_env, &WORDS);
        anyhow!(RewardError { kind, message })
    }
}

/// Returns math-verify in separate workers, which start with the first question.
fn math_verify(options: &PoolOptions) -> MathVerify {
    let (options, started) = (options.clone(), OnceLock::<Result<Pool, String>>::new());
    MathVerify::new(move |question, arguments| {
        let start = || {
            let source = CodeSource::BuiltIn { name: "math-verify", code: math_verify::CODE, functions: math_verify::QUESTIONS };
            Pool::start(source, options.clone()).map_err(|error| format!("{:#}", cannot_verify("a scorer of verl", error)))
        };
        match started.get_or_init(start) {
            Ok(pool) => pool.call(question, arguments),
            Err(reason) => Err(anyhow::Error::msg(reason.clone())),
        }
    })
}

fn setup(source: &CodeSource, options: &PoolOptions, (start_cpu, cpu): (u64, u64)) -> Vec<u8> {
    let mut setup = match source {
        CodeSource::File { path, names, reward_kwargs, positional } => {
            json!({ "path": path, "functions": names, "kwargs": reward_kwargs, "positional": positional })
        }
        CodeSource::BuiltIn { name, code, functions } => json!({ "name": name, "code": code, "functions": functions }),
        CodeSource::Estimator { path, name, config } => json!({ "path": path, "estimator": name, "config": config }),
        CodeSource::PolicyLoss { path, name, config } => json!({ "path": path, "policy_loss": name, "config": config }),
        CodeSource::PostProcessing { path, name, config } => json!({ "path": path, "post_processing": name, "config": config }),
    };
    setup["memory_limit_mb"] = json!(options.memory_limit_mb);
    setup["start_cpu_seconds"] = json!(start_cpu);
    setup["cpu_seconds"] = json!(cpu);
    format!("{setup}\n").into_bytes()
}

/// Describes how a worker ended. `cpu` is its limit on processor time in seconds.
fn died(lost: &WorkerError, cpu: u64) -> String {
    let status = match lost {
        WorkerError::Died(status) => status,
        WorkerError::TooLong => return format!("sent a reply of more than {MAX_BYTES} bytes"),
        WorkerError::TooManyValues => return format!("sent a reply of more than {MAX_VALUES} values"),
        _ => return "closed the pipe of its replies".to_owned(),
    };
    WORDS.ended(*status, cpu)
}
