//! A server: starts or connects to it, lists and calls its tools, and restarts it if it has ended.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use super::error::McpError;
use super::http::StreamableHttp;
use super::http_endpoint::HttpEndpoint;
use super::sse::Sse;
use super::stdio::Stdio;
use super::transport::{CALL, Transport};
use crate::ReplyFailure;
use crate::config::{HttpTransport, McpServerConfig, ServerAddress};
use crate::tools::built_in::ToolError;
use burnish_python::environment;
use burnish_python::words::Words;
use burnish_util::excerpt::excerpt;
use burnish_util::interrupt::Interrupt;

/// The supported versions of the protocol; the client offers the last.
const VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The limit of pages in a list of tools.
const MAX_PAGES: usize = 1000;
/// The limit in bytes of a list of tools, over all pages.
const MAX_LISTED: usize = 16 << 20;
/// The time in which a program must reply to a ping, after a call that took too long.
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

/// Options for starting servers.
#[derive(Clone, Debug, Default)]
pub struct McpOptions {
    /// Environment variables that programs get, in addition to the usual ones and those in their entry.
    pub pass_env: Vec<String>,
    /// The time limit of a start, including the list of tools.
    pub start_timeout: Duration,
    pub interrupt: Interrupt,
}

/// A running server. Its calls come from many threads at once.
pub(super) struct McpServer {
    config: McpServerConfig,
    /// Name and file of the server, for messages.
    place: String,
    options: McpOptions,
    link: Mutex<Option<Arc<dyn Transport>>>,
    /// Counts the readers of event streams by its clones.
    readers: Arc<()>,
}

impl McpServer {
    /// Starts a server and returns it with its tools, in the server's order. `file` is the file that lists the server.
    ///
    /// # Errors
    /// A missing program or unreachable address, no reply in time, an unsupported version of the protocol, or no tools.
    pub(super) fn start(config: McpServerConfig, file: &str, options: McpOptions) -> Result<(Self, Vec<Value>)> {
        let place = format!("{file}: the server `{}`", config.name);
        let server = Self { config, place, options, link: Mutex::new(None), readers: Arc::new(()) };
        let end = Instant::now() + server.options.start_timeout;
        let link = server.connect(end).map_err(|why| anyhow!("{} {why}", server.place))?;
        let tools = list(&*link, end).map_err(|failure| {
            let words = failure.words(server.options.start_timeout.as_secs_f64());
            anyhow!("{}, while listing its tools, {words}{}", server.place, link.last_words())
        })?;
        ensure!(!tools.is_empty(), "{} offers no tools: remove it from the file", server.place);
        *server.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
        Ok((server, tools))
    }

    /// Returns the server's own time limit of a call, if it has one.
    pub(super) fn timeout(&self) -> Option<Duration> {
        self.config.timeout
    }

    /// Connects and agrees on the protocol version; the error follows the name of the server.
    fn connect(&self, end: Instant) -> Result<Arc<dyn Transport>, String> {
        let seconds = self.options.start_timeout.as_secs_f64();
        let link = self.reach(end).map_err(|error| self.with_hint(format!("cannot be used: {error:#}")))?;
        let params = json!({
            "protocolVersion": VERSIONS.last(),
            "capabilities": {},
            "clientInfo": {"name": "burnish", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = link.request("initialize", params, end).map_err(|failure| {
            let message = format!("does not begin a session: it {}{}", failure.words(seconds), link.last_words());
            self.with_hint(message)
        })?;
        let version = answer["protocolVersion"].as_str().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            let known = VERSIONS.join(", ");
            return Err(format!("speaks version {} of the protocol; supported are {known}", excerpt(version)));
        }
        link.speaks(version);
        link.notify("notifications/initialized", end);
        Ok(link)
    }

    fn with_hint(&self, message: String) -> String {
        let hint = match &self.config.address {
            ServerAddress::Program { .. } => environment::hint(&message, &self.options.pass_env, &WORDS),
            ServerAddress::Address { .. } => String::new(),
        };
        message + &hint
    }

    fn reach(&self, end: Instant) -> Result<Arc<dyn Transport>> {
        let interrupt = self.options.interrupt.clone();
        Ok(match &self.config.address {
            ServerAddress::Program { command, args, env, folder } => {
                let mut all = environment::for_workers(&self.options.pass_env, &WORDS)?;
                // Variables in the file come last, so they override the others.
                all.extend(env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
                Arc::new(Stdio::start(&self.config.name, (command, args), all, folder.as_deref(), interrupt)?)
            }
            ServerAddress::Address { url, headers, transport } => {
                let site = HttpEndpoint::new(url, headers)?;
                match transport {
                    HttpTransport::Streamable => Arc::new(StreamableHttp::new(site)),
                    HttpTransport::Sse => match Sse::open(site, interrupt, &self.readers, end) {
                        Ok(link) => Arc::new(link),
                        Err(failure) => bail!("it {}", failure.words(self.options.start_timeout.as_secs_f64())),
                    },
                }
            }
        })
    }

    /// Returns the connection, and restarts the server if it has ended. Concurrent callers wait for the restart. Returns `None`
    /// if the time limit of the call is over by then, so that not every caller retries a server that cannot start.
    fn link(&self, end: Instant) -> Result<Option<Arc<dyn Transport>>, String> {
        let mut current = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = current.as_ref().filter(|link| link.is_open()) {
            return Ok(Some(link.clone()));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        let words = current.take().map(|link| link.last_words()).unwrap_or_default();
        tracing::warn!("{} has ended, restarting it{words}", self.place);
        let link = self.connect(Instant::now() + self.options.start_timeout)?;
        *current = Some(link.clone());
        Ok(Some(link))
    }

    /// Calls a tool. If the server has ended, restarts it once. A request that the server may have received is repeated only if
    /// `again`: the server may already have run it.
    ///
    /// # Errors
    /// [`ToolError`] if there is no result; the model gets its message.
    pub(super) fn call(&self, tool: &str, arguments: &Value, again: bool, timeout: Duration) -> Result<Value, ToolError> {
        let end = Instant::now() + timeout;
        let died = |why: &str| {
            tracing::debug!("{}, called for {tool}: {why}", self.place);
            ToolError { failure: ReplyFailure::Died, message: "its server died".to_owned() }
        };
        let mut is_first = true;
        loop {
            let link = self.link(end).map_err(|why| {
                tracing::warn!("{} {why}", self.place);
                died("cannot be started again")
            })?;
            // A call that was reported as late must not run afterwards.
            let Some(link) = link.filter(|_| Instant::now() < end) else { return Err(ToolError::late(timeout)) };
            match link.request(CALL, json!({"name": tool, "arguments": arguments}), end) {
                Ok(answer) => return Ok(answer),
                Err(McpError::Gone { delivered, .. }) if is_first && (again || !delivered) => is_first = false,
                Err(McpError::Gone { why, .. }) => return Err(died(&why)),
                Err(McpError::Refused(words)) => return Err(ToolError::raised(words)),
                Err(McpError::Interrupted) => return Err(ToolError::raised("the run was asked to stop")),
                Err(McpError::Late) => {
                    self.look(&*link);
                    return Err(ToolError::late(timeout));
                }
            }
        }
    }

    /// Pings a program after a call that took too long. If it does not reply, all further calls would wait, so it is killed, and
    /// the next call restarts it.
    fn look(&self, link: &dyn Transport) {
        if link.is_program() && link.is_open() && link.request("ping", json!({}), Instant::now() + PING) == Err(McpError::Late) {
            tracing::warn!("{} no longer replies, killing it", self.place);
            link.close("no longer replied, and was killed");
        }
    }
}

/// Returns all tools of a server, page by page.
fn list(link: &dyn Transport, end: Instant) -> Result<Vec<Value>, McpError> {
    let (mut tools, mut params, mut bytes) = (Vec::new(), json!({}), 0);
    for _ in 0..MAX_PAGES {
        let mut page = link.request("tools/list", params.clone(), end)?;
        let Value::Array(more) = page["tools"].take() else {
            return Err(McpError::Refused("the reply has no list of tools".to_owned()));
        };
        bytes += more.iter().map(|tool| tool.to_string().len()).sum::<usize>();
        if bytes > MAX_LISTED {
            return Err(McpError::Refused(format!("a list of tools of more than {} MiB", MAX_LISTED >> 20)));
        }
        tools.extend(more);
        match page["nextCursor"].take() {
            Value::String(next) if params["cursor"] != next.as_str() => params = json!({ "cursor": next }),
            _ => return Ok(tools),
        }
    }
    Err(McpError::Refused(format!("a list of tools of more than {MAX_PAGES} pages")))
}
