//! The host: the process from which each conversation's process is forked. It loads the user's files once, or leaves loading to
//! the conversations.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use super::channel::Channel;
use super::setup::{Offers, SessionOptions, Setup, first_line};
use super::socket::{Socket, random_token};
use super::starting::{HostGreeting, LoadingGate, LoadingSlot};
use super::words::WORDS;
use burnish_python::process::{Worker, WorkerError};
use burnish_python::words::Words;
use burnish_python::{MODULES, PROCESS, VALUES, environment};
use burnish_util::interrupt::Interrupt;

/// The code of the host.
static CODE: LazyLock<String> = LazyLock::new(|| {
    let modules = [
        include_str!("schemas.py"),
        include_str!("loops.py"),
        include_str!("run_loops.py"),
        include_str!("verifiers.py"),
        include_str!("stand_ins.py"),
        include_str!("participants.py"),
        include_str!("tools.py"),
        include_str!("program.py"),
        include_str!("offers.py"),
        include_str!("left_open.py"),
        include_str!("host.py"),
    ];
    [PROCESS, VALUES, MODULES].into_iter().chain(modules).collect::<Vec<_>>().join("\n\n")
});

/// A running host, usable from many threads at once. Clones share it.
#[derive(Clone)]
pub struct Host(Arc<Shared>);

struct Shared {
    options: SessionOptions,
    environment: Vec<(OsString, OsString)>,
    first_line: Vec<u8>,
    /// The limit on processor time of a start, in seconds.
    start_cpu: u64,
    offers: Offers,
    /// True if each conversation loads the files itself.
    loads_each: bool,
    loading: LoadingGate,
    socket: Socket,
    process: Mutex<HostProcess>,
}

/// The process, if it runs, and the number of processes before it.
struct HostProcess {
    worker: Option<Worker>,
    generation: u64,
}

/// The process of a conversation.
pub(super) struct ForkedProcess {
    pub channel: Channel,
    generation: u64,
}

impl Host {
    /// Starts the process, which loads the files and reports what they offer.
    ///
    /// # Errors
    /// A missing interpreter; a file that cannot be loaded; a requested object that is missing or cannot be used; a start that
    /// takes too long; an interrupt.
    pub fn start(setup: &Setup, options: SessionOptions) -> Result<Self> {
        let environment = environment::for_workers(&options.pass_env, &WORDS)?;
        let start_cpu = cpu_of(options.start_timeout);
        let line = first_line(setup, &options, start_cpu, false)?;
        let mut shared = Shared {
            options,
            environment,
            first_line: line,
            start_cpu,
            offers: Offers::default(),
            loads_each: false,
            loading: LoadingGate::default(),
            socket: Socket::open()?,
            process: Mutex::new(HostProcess { worker: None, generation: 0 }),
        };
        let (mut worker, mut greeting) = shared.start_process()?;
        shared.loads_each = greeting.loads_each(shared.options.start_method);
        shared.offers = greeting.offers.take().context("the process of an agent file reported nothing that its files offer")?;
        if shared.loads_each {
            drop(worker);
            shared.first_line = first_line(setup, &shared.options, start_cpu, true)?;
            worker = shared.start_process()?.0;
        }
        shared.process().worker = Some(worker);
        Ok(Self(Arc::new(shared)))
    }

    /// Returns true if each conversation loads the files itself, either because forked processes would share objects of the
    /// files, or because the options require it.
    pub fn loads_each(&self) -> bool {
        self.0.loads_each
    }

    /// Waits for a slot among the conversations that load the files.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn enter(&self) -> Result<LoadingSlot<'_>> {
        self.0.loading.enter(&self.0.options.interrupt)
    }

    /// Records that a conversation has no process; warns the first time.
    pub(super) fn failed(&self, message: &str) {
        self.0.loading.failed(message);
    }

    /// Returns the tools, environments and loops of the files.
    pub fn offers(&self) -> &Offers {
        &self.0.offers
    }

    pub(super) fn options(&self) -> &SessionOptions {
        &self.0.options
    }

    /// Returns the limit on processor time for a call with this time limit, in seconds. Without a limit set by the user, the
    /// default is so high that only an unwatched process reaches it.
    pub(super) fn cpu(&self, timeout: Duration) -> u64 {
        self.0.options.cpu_limit.unwrap_or_else(|| cpu_of(timeout))
    }

    /// Forks a process for a conversation. Restarts a host that has died.
    ///
    /// # Errors
    /// A host that cannot be restarted, or a process that does not connect.
    pub(super) fn fork(&self) -> Result<ForkedProcess> {
        let shared = &*self.0;
        let mut process = shared.process();
        if process.worker.as_ref().is_none_or(Worker::is_dead) {
            tracing::warn!("the process that loads the agent files died, restarting it");
            process.worker = None;
            process.generation += 1;
            process.worker = Some(shared.start_process()?.0);
        }
        let token = random_token()?;
        let pid = shared.exchange(&mut process, &json!({ "fork": token, "path": shared.socket.path() }))?;
        let pid = pid["pid"].as_u64().and_then(|pid| pid.try_into().ok()).context("a fork without a process id")?;
        match shared.socket.wait_for(&token, shared.options.start_timeout) {
            Ok(Some(client)) => Ok(ForkedProcess { channel: Channel::new(pid, client), generation: process.generation }),
            other => {
                let _ = shared.exchange(&mut process, &json!({ "reap": pid }));
                other?;
                bail!("the process of a conversation did not connect within {} s", shared.options.start_timeout.as_secs_f64())
            }
        }
    }

    /// Ends the process of a conversation with everything that it started; returns its exit status, if known.
    pub(super) fn reap(&self, forked: &ForkedProcess) -> Option<ExitStatus> {
        forked.channel.kill();
        let mut process = self.0.process();
        if process.generation != forked.generation || process.worker.is_none() {
            return None;
        }
        let reply = self.0.exchange(&mut process, &json!({ "reap": forked.channel.pid })).ok()?;
        Some(ExitStatus::from_raw(reply["status"].as_i64()?.try_into().ok()?))
    }
}

impl Shared {
    fn process(&self) -> MutexGuard<'_, HostProcess> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_process(&self) -> Result<(Worker, HostGreeting)> {
        let options = &self.options;
        let mut worker = Worker::spawn(&options.python, &CODE, &self.environment, &WORDS)?;
        let reply = match worker.ask(&self.first_line, 0, options.start_timeout, &options.interrupt) {
            Ok(reply) => reply.line,
            Err(WorkerError::Interrupted(interrupted)) => return Err(interrupted),
            Err(WorkerError::TimedOut(place)) => {
                let seconds = options.start_timeout.as_secs_f64();
                bail!("loading the agent files took longer than {seconds} s (reward.start_timeout){}", Words::at(&place))
            }
            Err(WorkerError::Died(status)) => {
                let ended = WORDS.ended(status, self.start_cpu);
                return Err(self.failed(&format!("their process {ended} while they were loaded{}", worker.last_words())));
            }
            Err(_) => return Err(self.failed(&format!("their process sent an unreadable reply{}", worker.last_words()))),
        };
        let reply: Value =
            serde_json::from_slice(&reply).context("the first reply of an agent file's process is not valid JSON")?;
        if let Some(error) = reply["error"].as_str() {
            return Err(self.failed(error));
        }
        Ok((worker, HostGreeting::read(&reply)?))
    }

    /// Sends a request that the process handles at once.
    fn exchange(&self, process: &mut HostProcess, request: &Value) -> Result<Value> {
        let worker = process.worker.as_mut().context("the process with the agent files is not running")?;
        let line = format!("{request}\n");
        // An interrupt must not end the process, because other conversations would end with it.
        match worker.ask(line.as_bytes(), 0, self.options.start_timeout, &Interrupt::default()) {
            Ok(reply) => serde_json::from_slice(&reply.line).context("the reply of the agent files' process is not valid JSON"),
            Err(lost) => {
                let how = match lost {
                    WorkerError::Died(status) => WORDS.ended(status, self.start_cpu),
                    WorkerError::TimedOut(place) => format!("does not reply{}", Words::at(&place)),
                    _ => "sent an unreadable reply".to_owned(),
                };
                let words = worker.last_words();
                process.worker = None;
                process.generation += 1;
                bail!("the process that has loaded the agent files {how}{words}")
            }
        }
    }

    /// Returns an error of the user's files, with advice that fits its text.
    fn failed(&self, text: &str) -> anyhow::Error {
        let between = if text.starts_with("Traceback") { ":\n" } else { ": " };
        let memory = WORDS.memory_hint(text, self.options.memory_limit_mb);
        anyhow!(
            "the agent files cannot be used{between}{text}{memory}{}",
            environment::hint(text, &self.options.pass_env, &WORDS)
        )
    }
}

/// Returns the processor time, in seconds, that a process could use on all cores in this time.
fn cpu_of(time: Duration) -> u64 {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    time.as_secs().max(1).saturating_mul(cores).min(u64::from(u32::MAX))
}
