//! The bounds of a server.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The open files that a process needs beside its connections.
const OTHER_FILES: u64 = 128;

/// The bounds of a server. Their defaults suit a machine of one user.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of connections; further ones are answered with 503 and closed.
    pub connections: usize,
    /// The time for all headers of a request, and again for its body. A connection without a request is closed after it, too.
    pub request_time: Duration,
    /// The largest body of a request, in bytes.
    pub body: usize,
    /// The words for that bound in a refusal, such as the option that sets it.
    pub body_bound: &'static str,
    /// The largest sum of the bodies of all requests that are being received or answered, in bytes.
    pub in_flight: usize,
}

impl Limits {
    pub const CONNECTIONS: usize = 1024;
    pub const REQUEST_TIME: Duration = Duration::from_secs(30);
    pub const BODY: usize = 16 << 20;
    pub const IN_FLIGHT: usize = 64 << 20;

    /// The bounds of a server that only shows, and takes no bodies.
    pub const SHOWING: Self = Self {
        connections: Self::CONNECTIONS,
        request_time: Self::REQUEST_TIME,
        body: 0,
        body_bound: "what a server that only shows takes: bytes",
        in_flight: Self::IN_FLIGHT,
    };

    /// Returns the bounds with as many connections as the process may have open files for; its limit is raised as far as it may be.
    pub fn within_open_files(self) -> Self {
        let wanted = self.connections as u64 + OTHER_FILES;
        let Rlimit { mut current, maximum } = getrlimit(Resource::Nofile);
        if current.is_some_and(|current| current < wanted) {
            let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
            if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() {
                current = Some(raised);
            }
        }
        let room = current.map_or(wanted, |current| current.saturating_sub(OTHER_FILES)).max(1);
        Self { connections: self.connections.min(usize::try_from(room).unwrap_or(usize::MAX)), ..self }
    }
}
