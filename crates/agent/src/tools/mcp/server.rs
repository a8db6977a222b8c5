//! A server: started or connected to, asked what it offers, called, and started again when it has ended.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use super::failure::Failure;
use super::http::Http;
use super::link::{CALL, Link};
use super::site::Site;
use super::sse::Sse;
use super::stdio::Stdio;
use crate::Trouble;
use crate::config::{Reach, ServerConfig, Transport};
use crate::tools::built_in::Failed;
use burnish_python::environment;
use burnish_python::words::Words;
use burnish_util::interrupt::Interrupt;

/// The versions of the protocol that are spoken, the last of which is offered.
const VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The most pages of a list of tools.
const MOST_PAGES: usize = 1000;
/// The longest time in which a program answers that it is there, after a call that took too long.
const PING: Duration = Duration::from_secs(5);

/// The settings that messages name.
static WORDS: Words = Words {
    file: "a server",
    files: "servers of tools",
    python: "command",
    pass_env: "reward.pass_env",
    memory_limit_mb: "",
    cpu_limit: "",
};

/// How servers are started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The environment variables that programs get in addition to the usual ones and their own.
    pub pass_env: Vec<String>,
    /// The time for a start, with the list of tools.
    pub start_timeout: Duration,
    pub interrupt: Interrupt,
}

/// A server that runs. Its calls come from many threads at once.
pub struct Server {
    config: ServerConfig,
    /// Its name and file, for messages.
    place: String,
    options: Options,
    link: Mutex<Option<Arc<dyn Link>>>,
}

impl Server {
    /// Starts a server and returns it with the tools that it offers, in its order. `file` is where it is listed.
    ///
    /// # Errors
    /// A program or an address that is not there, no answer in time, a version of the protocol that is not spoken here, no tools.
    pub fn start(config: ServerConfig, file: &str, options: Options) -> Result<(Self, Vec<Value>)> {
        let place = format!("{file}: the server `{}`", config.name);
        let server = Self { config, place, options, link: Mutex::new(None) };
        let end = Instant::now() + server.options.start_timeout;
        let link = server.connect(end).map_err(|why| anyhow!("{} {why}", server.place))?;
        let tools = list(&*link, end).map_err(|failure| {
            let words = failure.words(server.options.start_timeout.as_secs_f64());
            anyhow!("{}, asked for its tools, {words}{}", server.place, link.last_words())
        })?;
        ensure!(!tools.is_empty(), "{} offers no tools: leave it out", server.place);
        *server.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
        Ok((server, tools))
    }

    /// The longest time of a call, if the server has its own.
    pub fn timeout(&self) -> Option<Duration> {
        self.config.timeout
    }

    /// Connects and agrees on the protocol; the error is what the server does, after its name.
    fn connect(&self, end: Instant) -> Result<Arc<dyn Link>, String> {
        let seconds = self.options.start_timeout.as_secs_f64();
        let link = self.reach(end).map_err(|error| self.with_hint(format!("cannot be used: {error:#}")))?;
        let asked = json!({
            "protocolVersion": VERSIONS.last(),
            "capabilities": {},
            "clientInfo": {"name": "burnish", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = link.request("initialize", asked, end).map_err(|failure| {
            let said = format!("does not begin a session: it {}{}", failure.words(seconds), link.last_words());
            self.with_hint(said)
        })?;
        let version = answer["protocolVersion"].as_str().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            let known = VERSIONS.join(", ");
            return Err(format!("speaks version {version:?} of the protocol; spoken here are {known}"));
        }
        link.speaks(version);
        link.notify("notifications/initialized");
        Ok(link)
    }

    fn with_hint(&self, said: String) -> String {
        let hint = match &self.config.reach {
            Reach::Program { .. } => environment::hint(&said, &self.options.pass_env, &WORDS),
            Reach::Address { .. } => String::new(),
        };
        said + &hint
    }

    fn reach(&self, end: Instant) -> Result<Arc<dyn Link>> {
        let interrupt = self.options.interrupt.clone();
        Ok(match &self.config.reach {
            Reach::Program { command, args, env, folder } => {
                let mut all = environment::of_workers(&self.options.pass_env, &WORDS)?;
                // What the file says comes last, and counts.
                all.extend(env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
                Arc::new(Stdio::start(&self.config.name, (command, args), all, folder.as_deref(), interrupt)?)
            }
            Reach::Address { url, headers, transport } => {
                let site = Site::new(url, headers)?;
                match transport {
                    Transport::Streamable => Arc::new(Http::new(site)),
                    Transport::Sse => match Sse::open(site, interrupt, end) {
                        Ok(link) => Arc::new(link),
                        Err(failure) => bail!("it {}", failure.words(self.options.start_timeout.as_secs_f64())),
                    },
                }
            }
        })
    }

    /// The link, made anew if it has ended. Whoever comes meanwhile waits for it; `None` if the time of its call is over then, so
    /// that a server that does not start is not tried once for each of them.
    fn link(&self, end: Instant) -> Result<Option<Arc<dyn Link>>, String> {
        let mut kept = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = kept.as_ref().filter(|link| link.is_open()) {
            return Ok(Some(link.clone()));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        let words = kept.take().map(|link| link.last_words()).unwrap_or_default();
        tracing::warn!("{} has ended and is started again{words}", self.place);
        let link = self.connect(Instant::now() + self.options.start_timeout)?;
        *kept = Some(link.clone());
        Ok(Some(link))
    }

    /// Calls a tool. A server that has ended is started again, once; what it was asked before it ended is asked again only if
    /// `again`: it may have done it.
    ///
    /// # Errors
    /// [`Failed`] if there is no answer; the model is told the message.
    pub fn call(&self, tool: &str, arguments: &Value, again: bool, timeout: Duration) -> Result<Value, Failed> {
        let end = Instant::now() + timeout;
        let died = |why: &str| {
            tracing::debug!("{}, called for {tool}: {why}", self.place);
            Failed { trouble: Trouble::Died, message: "its server died".to_owned() }
        };
        let mut is_first = true;
        loop {
            let link = self.link(end).map_err(|why| {
                tracing::warn!("{} {why}", self.place);
                died("cannot be started again")
            })?;
            // What the model was told is late must not be carried out later.
            let Some(link) = link.filter(|_| Instant::now() < end) else { return Err(Failed::late(timeout)) };
            match link.request(CALL, json!({"name": tool, "arguments": arguments}), end) {
                Ok(answer) => return Ok(answer),
                Err(Failure::Gone { delivered, .. }) if is_first && (again || !delivered) => is_first = false,
                Err(Failure::Gone { why, .. }) => return Err(died(&why)),
                Err(Failure::Refused(words)) => return Err(Failed::raised(words)),
                Err(Failure::Interrupted) => return Err(Failed::raised("the run was asked to stop")),
                Err(Failure::Late) => {
                    self.look(&*link);
                    return Err(Failed::late(timeout));
                }
            }
        }
    }

    /// Looks whether a program still answers after a call that took too long. One that does not would let all further calls wait,
    /// so it is ended, and the next call starts it again.
    fn look(&self, link: &dyn Link) {
        if link.is_program() && link.is_open() && link.request("ping", json!({}), Instant::now() + PING) == Err(Failure::Late) {
            tracing::warn!("{} does not answer any more, and is killed", self.place);
            link.close("did not answer any more, and was killed");
        }
    }
}

/// Every tool that a server offers, page by page.
fn list(link: &dyn Link, end: Instant) -> Result<Vec<Value>, Failure> {
    let (mut tools, mut asked) = (Vec::new(), json!({}));
    for _ in 0..MOST_PAGES {
        let mut page = link.request("tools/list", asked.clone(), end)?;
        let Value::Array(more) = page["tools"].take() else {
            return Err(Failure::Refused("no list of tools".to_owned()));
        };
        tools.extend(more);
        match page["nextCursor"].take() {
            Value::String(next) if asked["cursor"] != next.as_str() => asked = json!({ "cursor": next }),
            _ => return Ok(tools),
        }
    }
    Err(Failure::Refused(format!("a list of tools of more than {MOST_PAGES} pages")))
}
