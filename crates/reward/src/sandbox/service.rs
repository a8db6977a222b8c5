//! The connection to a Sandbox Fusion service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::cases::Cases;
use super::client::{CASE_TIMEOUT, Client};
use super::verdict::{self, Verdict};
use crate::failure::{Failure, FailureKind};
use burnish_util::interrupt::Interrupt;

/// The longest time that an interrupt goes unnoticed.
const POLL: Duration = Duration::from_millis(50);

/// The options of the service.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// The address of the service's `run_code`.
    pub url: String,
    /// The largest number of programs that run at once.
    pub max_concurrent: usize,
    /// The memory limit of one program, in MiB.
    pub memory_limit_mb: u64,
    pub interrupt: Interrupt,
}

/// The connection to the service.
pub struct Sandbox {
    pub(super) asked: Arc<Asked>,
    interrupt: Interrupt,
}

pub(super) struct Asked {
    pub(super) client: Client,
    /// The number of further programs that may run now.
    free: Mutex<usize>,
    freed: Condvar,
}

impl Sandbox {
    /// Prepares the connection; nothing is sent yet.
    ///
    /// # Errors
    /// If the address is invalid or a limit is zero.
    pub fn new(options: SandboxOptions) -> Result<Self> {
        let SandboxOptions { url, max_concurrent, memory_limit_mb, interrupt } = options;
        anyhow::ensure!(max_concurrent > 0, "reward.sandbox_fusion.max_concurrent must be at least 1");
        anyhow::ensure!(memory_limit_mb > 0, "reward.sandbox_fusion.memory_limit_mb must be at least 1");
        let client = Client::new(&url, memory_limit_mb).context("reward.sandbox_fusion.url")?;
        Ok(Self { asked: Arc::new(Asked { client, free: Mutex::new(max_concurrent), freed: Condvar::new() }), interrupt })
    }

    /// The verdict on each of the first ten cases.
    ///
    /// # Errors
    /// [`Failure`] if the service has no verdict on one of them, or the interruption of the run.
    pub(super) fn run(&self, program: &str, cases: Cases) -> Result<Vec<Verdict>> {
        let requests = cases.requests(program);
        let count = requests.len();
        let (send, receive) = channel();
        let abandoned = Arc::new(AtomicBool::new(false));
        // Each on a thread of its own, for which nobody has to wait: the service can hang for as long as a request may take.
        for (index, request) in requests.into_iter().enumerate() {
            let (asked, send, abandoned) = (self.asked.clone(), send.clone(), abandoned.clone());
            let run = move || {
                _ = send.send((
                    index,
                    asked.verdict(&request.code, request.stdin.as_deref(), request.expected.as_deref(), &abandoned),
                ))
            };
            thread::Builder::new().name("sandbox".to_owned()).spawn(run).context("no thread to ask the sandbox")?;
        }
        drop(send);
        let mut verdicts: Vec<Option<Result<Verdict, Failure>>> = Vec::new();
        verdicts.resize_with(count, || None);
        loop {
            match receive.recv_timeout(POLL) {
                Ok((index, verdict)) => verdicts[index] = Some(verdict),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.interrupt.check().inspect_err(|_| abandoned.store(true, Ordering::Relaxed))?
                }
            }
        }
        settle(verdicts)
    }

    /// Runs one program without input, for at most `seconds`, and returns the service's answer. It blocks; the caller is on a thread that
    /// may.
    ///
    /// # Errors
    /// If the service cannot be reached, or answers with an error or without JSON.
    pub fn run_program(&self, code: &str, seconds: u64) -> Result<Value, Failure> {
        self.asked.answer(code, None, seconds, &AtomicBool::new(false))
    }
}

impl Asked {
    fn verdict(
        &self,
        code: &str,
        stdin: Option<&str>,
        expected: Option<&str>,
        abandoned: &AtomicBool,
    ) -> Result<Verdict, Failure> {
        verdict::of(&self.answer(code, stdin, CASE_TIMEOUT, abandoned)?, expected)
    }

    /// The service's answer to one program, which waits until it may run.
    fn answer(&self, code: &str, stdin: Option<&str>, seconds: u64, abandoned: &AtomicBool) -> Result<Value, Failure> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let response = self.client.run(code, stdin, seconds, abandoned);
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
        response
    }
}

/// Collects the verdicts in order. A program that does not compile in one case does not compile in later ones either, whatever
/// the service says about them.
fn settle(verdicts: Vec<Option<Result<Verdict, Failure>>>) -> Result<Vec<Verdict>> {
    let mut settled: Vec<Verdict> = Vec::new();
    for (index, verdict) in verdicts.into_iter().enumerate() {
        let compiles = settled.last().is_none_or(|before| before.compiles());
        let lost = || Failure { kind: FailureKind::Crash, message: "the request broke off".to_owned() };
        let verdict = match verdict.unwrap_or_else(|| Err(lost())) {
            Ok(verdict) if compiles || !verdict.compiles() => verdict,
            Err(Failure { kind, message }) if compiles => {
                let message = format!("the sandbox has no verdict on test case {index}: {message}");
                return Err(Failure { kind, message }.into());
            }
            _ => Verdict::COMPILE_ERROR_SKIPPED,
        };
        settled.push(verdict);
    }
    Ok(settled)
}
