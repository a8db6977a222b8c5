//! Limits on the memory and time of a chat template, which is untrusted since it comes with a model. minijinja counts
//! instructions but not bytes, and one instruction can double a text or take exponential time on nested lists.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use minijinja::{Environment, ErrorKind, Value};

use burnish_util::contained::{ContainedError, WorkLimits, part};
use burnish_util::platform::thread_time;

/// Limit on instructions per rendering; real templates take a few thousand.
pub(crate) const FUEL: u64 = 1_000_000;

/// The limits of one rendering. The stack suffices for a value nested as deeply as [`FUEL`] allows, at a few hundred bytes per
/// level. Unused stack takes no memory.
pub(crate) const RENDERING: WorkLimits = WorkLimits { memory: 256 << 20, time: Some(Duration::from_secs(5)), stack: 256 << 20 };

/// Size limit of a rendered text, in bytes.
const MAX_TEXT: usize = 32 << 20;

/// Largest part of a template's error to show, in bytes, since the template controls the text.
const MAX_MESSAGE: usize = 2000;

/// Time of one rendering that is not counted; real ones take less than a millisecond.
const FREE: Duration = Duration::from_millis(5);
/// Total time of all renderings beyond [`FREE`].
const SLOW: Duration = Duration::from_secs(5);

/// Number of requests whose rendering may be abandoned before the template is given up.
const MAX_ABANDONED: usize = 8;

/// The time that the renderings of a template have taken so far.
#[derive(Default)]
pub(crate) struct RenderBudget {
    /// Microseconds beyond [`FREE`].
    slow: AtomicU64,
    /// Reason for giving up on the template: it would exceed its limits for every row.
    failure: Arc<OnceLock<String>>,
    /// True if the texts come from different clients: one that exceeds the limits says nothing about the next.
    is_for_requests: bool,
    /// Number of renderings that were abandoned with their thread and its memory.
    abandoned: AtomicUsize,
}

/// The error of a template that was given up on another text.
#[derive(Debug)]
pub(crate) struct TemplateLimitError(String);

impl std::error::Error for TemplateLimitError {}

impl fmt::Display for TemplateLimitError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RenderBudget {
    /// Creates the budget of a template that renders the texts of many clients, for years.
    pub(crate) fn for_requests() -> Self {
        Self { is_for_requests: true, ..Self::default() }
    }

    /// Creates an unused budget of the same kind.
    pub(crate) fn unused(&self) -> Self {
        Self { is_for_requests: self.is_for_requests, ..Self::default() }
    }

    /// Renders the template `name` of `environment`; `failed` begins the message of an error.
    ///
    /// # Errors
    /// If the template fails, or exceeds its limits now or earlier.
    pub(crate) fn render(
        &self,
        environment: &Arc<Environment<'static>>,
        name: &'static str,
        failed: &Arc<str>,
        context: Value,
    ) -> Result<String> {
        if let Some(why) = self.failure.get() {
            return Err(Error::new(TemplateLimitError(why.clone())).context(failed.clone()));
        }
        let environment = environment.clone();
        let render = move || {
            let before = thread_time();
            let rendered = environment.get_template(name).and_then(|template| template.render(context));
            (rendered.map_err(|error| (error.kind(), with_causes(&error))), thread_time().saturating_sub(before))
        };
        let (failure, begins) = (self.failure.clone(), failed.clone());
        let exceeds = move |excess: ContainedError| format!("{begins}: {}", failure.get_or_init(|| excess.to_string()));
        let done = part(RENDERING, exceeds, render).map_err(|excess| {
            let is_one_of_few = self.abandoned.fetch_add(1, Ordering::Relaxed) < MAX_ABANDONED;
            if self.is_for_requests && is_one_of_few { Error::msg(excess.to_string()) } else { self.set(excess.to_string()) }
        });
        done.and_then(|(rendered, time)| self.checked(rendered, time)).with_context(|| failed.clone())
    }

    /// Returns the rendered text, unless the text is too long or took too much time.
    fn checked(&self, rendered: Result<String, (ErrorKind, String)>, time: Duration) -> Result<String> {
        let beyond = time.saturating_sub(FREE).as_micros() as u64;
        let so_far = if self.is_for_requests { 0 } else { self.slow.fetch_add(beyond, Ordering::Relaxed) };
        if so_far + beyond > SLOW.as_micros() as u64 {
            return Err(self.give_up(format!("it takes too long: {:.0} milliseconds for one text", time.as_secs_f64() * 1e3)));
        }
        match rendered {
            Ok(text) if text.len() > MAX_TEXT => bail!("it renders a text of more than {} MiB", MAX_TEXT >> 20),
            Ok(text) => Ok(text),
            Err((ErrorKind::OutOfFuel, _)) => Err(self.give_up(format!("it takes more than {FUEL} instructions for one text"))),
            Err((_, message)) => bail!("{message}"),
        }
    }

    /// Returns the error of a text that exceeds the limits, and gives up on the template unless other clients use it.
    fn give_up(&self, why: String) -> Error {
        if self.is_for_requests { Error::msg(why) } else { self.set(why) }
    }

    /// Records why the template is given up. The error is a [`TemplateLimitError`] if it was given up before.
    fn set(&self, why: String) -> Error {
        match self.failure.set(why) {
            Ok(()) => Error::msg(self.failure.get().cloned().unwrap_or_default()),
            Err(_) => Error::new(TemplateLimitError(self.failure.get().cloned().unwrap_or_default())),
        }
    }
}

/// Returns the error message with its causes.
fn with_causes(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause.filter(|_| text.len() < MAX_MESSAGE) {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    if text.len() > MAX_MESSAGE {
        text.truncate((0..=MAX_MESSAGE).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0));
        text.push('…');
    }
    text
}
