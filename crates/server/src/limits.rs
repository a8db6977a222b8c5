//! The limits of a server.

use std::time::Duration;

use burnish_util::platform::raise_open_files;

/// Number of open files that a process needs in addition to its connections; if the limit is small, half of the files.
const OTHER_FILES: u64 = 128;

/// The limits of a server. The defaults suit a single user's machine.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Number of connections; further ones get status 503 and are closed.
    pub connections: usize,
    /// Time for all headers of a request, and again for its body. An idle connection is closed after this time, too.
    pub request_time: Duration,
    /// Largest body of a request, in bytes.
    pub body: usize,
    /// Name of that limit in an error, such as the option that sets it.
    pub body_bound: &'static str,
    /// Largest total size of the bodies of all current requests, in bytes.
    pub in_flight: usize,
}

impl ServerLimits {
    pub const CONNECTIONS: usize = 1024;
    pub const REQUEST_TIME: Duration = Duration::from_secs(30);
    pub const BODY: usize = 16 << 20;
    pub const IN_FLIGHT: usize = 64 << 20;

    /// The limits of a read-only server, which accepts no bodies.
    pub const SHOWING: Self = Self {
        connections: Self::CONNECTIONS,
        request_time: Self::REQUEST_TIME,
        body: 0,
        body_bound: "the limit of a read-only server, in bytes:",
        in_flight: Self::IN_FLIGHT,
    };

    /// Returns limits whose connections fit in the process's limit on open files, after raising that limit as far as allowed.
    pub(crate) fn within_open_files(self) -> Self {
        let requested = self.connections as u64 + OTHER_FILES;
        let Some(files) = raise_open_files(requested) else { return self };
        let limits = Self { connections: self.connections.min(within(files)), ..self };
        if limits.connections < self.connections {
            tracing::warn!(
                "the limit of {files} open files (ulimit -n) leaves room for {} connections of {}; further ones get status 503",
                limits.connections,
                self.connections
            );
        }
        limits
    }
}

/// Returns the number of connections under a limit of open files.
fn within(files: u64) -> usize {
    let room = files.saturating_sub(OTHER_FILES.min(files / 2)).max(1);
    usize::try_from(room).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn a_small_limit_of_files_leaves_half_of_them_to_connections() {
        assert_eq!([0, 1, 2, 128, 256, 1024, 1152].map(within), [1, 1, 1, 64, 128, 896, 1024]);
    }
}
