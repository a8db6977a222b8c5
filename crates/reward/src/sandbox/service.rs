//! Connection to a Sandbox Fusion service.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::cases::Cases;
use super::client::{CASE_TIMEOUT, SandboxClient};
use super::verdict::{self, CaseVerdict};
use crate::reward_error::{RewardError, RewardFailure};
use burnish_util::interrupt::Interrupt;

/// Longest time until an interrupt is noticed.
const POLL: Duration = Duration::from_millis(50);

/// Options of the service.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// Address of the service's `run_code`.
    pub url: String,
    /// Largest number of programs that run at once.
    pub max_concurrent: usize,
    /// Memory limit of one program, in MiB.
    pub memory_limit_mb: u64,
    pub interrupt: Interrupt,
}

/// Connection to the service.
pub struct Sandbox {
    pub(super) slots: Arc<ProgramSlots>,
    interrupt: Interrupt,
}

pub(super) struct ProgramSlots {
    pub(super) client: SandboxClient,
    /// Number of further programs that may start now.
    free: Mutex<usize>,
    freed: Condvar,
}

impl Sandbox {
    /// Prepares the connection; no request is sent yet.
    ///
    /// # Errors
    /// If the address is invalid or a limit is zero.
    pub fn new(options: SandboxOptions) -> Result<Self> {
        let SandboxOptions { url, max_concurrent, memory_limit_mb, interrupt } = options;
        anyhow::ensure!(max_concurrent > 0, "reward.sandbox_fusion.max_concurrent must be at least 1");
        anyhow::ensure!(memory_limit_mb > 0, "reward.sandbox_fusion.memory_limit_mb must be at least 1");
        let client = SandboxClient::new(&url, memory_limit_mb).context("reward.sandbox_fusion.url")?;
        Ok(Self { slots: Arc::new(ProgramSlots { client, free: Mutex::new(max_concurrent), freed: Condvar::new() }), interrupt })
    }

    /// Returns the verdict on each of the first ten cases.
    ///
    /// # Errors
    /// A [`RewardError`] if the service has no verdict on one of them, or the interruption of the run.
    pub(super) fn run(&self, program: &str, cases: Cases) -> Result<Vec<CaseVerdict>> {
        let requests = cases.requests(program);
        let count = requests.len();
        let (send, receive) = channel();
        let abandoned = Arc::new(AtomicBool::new(false));
        // Each request runs on a separate thread that is never joined: the service can hang for the whole time limit of a
        // request.
        for (index, request) in requests.into_iter().enumerate() {
            let (slots, send, abandoned) = (self.slots.clone(), send.clone(), abandoned.clone());
            let run = move || {
                _ = send.send((
                    index,
                    slots.verdict(&request.code, request.stdin.as_deref(), request.expected.as_deref(), &abandoned),
                ))
            };
            thread::Builder::new().name("sandbox".to_owned()).spawn(run).context("cannot start a thread for the sandbox")?;
        }
        drop(send);
        let mut verdicts: Vec<Option<Result<CaseVerdict, RewardError>>> = Vec::new();
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

    /// Runs one program without input, for at most `seconds`, and returns the service's reply. The call blocks.
    ///
    /// # Errors
    /// If the service cannot be reached, or replies with an error or without JSON.
    pub fn run_program(&self, code: &str, seconds: u64) -> Result<Value, RewardError> {
        self.slots.run(code, None, seconds, &AtomicBool::new(false))
    }
}

impl ProgramSlots {
    fn verdict(
        &self,
        code: &str,
        stdin: Option<&str>,
        expected: Option<&str>,
        abandoned: &AtomicBool,
    ) -> Result<CaseVerdict, RewardError> {
        verdict::from_reply(&self.run(code, stdin, CASE_TIMEOUT, abandoned)?, expected)
    }

    /// Waits until the program may run, and returns the service's reply.
    fn run(&self, code: &str, stdin: Option<&str>, seconds: u64, abandoned: &AtomicBool) -> Result<Value, RewardError> {
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

/// Collects the verdicts in order. A program that fails to compile in one case counts as failing to compile in all later ones.
fn settle(verdicts: Vec<Option<Result<CaseVerdict, RewardError>>>) -> Result<Vec<CaseVerdict>> {
    let mut settled: Vec<CaseVerdict> = Vec::new();
    for (index, verdict) in verdicts.into_iter().enumerate() {
        let compiles = settled.last().is_none_or(|before| before.compiles());
        let lost = || RewardError { kind: RewardFailure::Crash, message: "the request broke off".to_owned() };
        let verdict = match verdict.unwrap_or_else(|| Err(lost())) {
            Ok(verdict) if compiles || !verdict.compiles() => verdict,
            Err(RewardError { kind, message }) if compiles => {
                let message = format!("no verdict of the sandbox on test case {index}: {message}");
                return Err(RewardError { kind, message }.into());
            }
            _ => CaseVerdict::COMPILE_ERROR_SKIPPED,
        };
        settled.push(verdict);
    }
    Ok(settled)
}
