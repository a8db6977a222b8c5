//! The process of a server: it starts without the environment's secrets, and is killed with all its children.
//!
//! The process leads a process group. A watcher in the same group, a shell that reads from our pipe, kills the group when the
//! pipe closes. So no process of a server survives, even if the server ignores the end of its input, and no matter how this
//! process ends.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;

use burnish_python::printed::Printed;
use burnish_util::platform;

/// The interval for polling an ending process.
const LOOK: Duration = Duration::from_millis(5);

/// A process that runs or has ended.
pub(super) struct ServerProcess {
    /// Id of the process, which leads its group.
    group: u32,
    state: Mutex<State>,
    printed: Mutex<Printed>,
}

struct State {
    child: Child,
    watcher: Child,
    /// The pipe that the watcher reads; nothing is ever written to it.
    _watched: Option<ChildStdin>,
    ended: bool,
}

impl ServerProcess {
    /// Starts a program with exactly this environment. `name` labels its error output in the log.
    ///
    /// # Errors
    /// A program that is missing or cannot be started.
    pub(super) fn start(
        name: &str,
        command: &str,
        args: &[String],
        environment: Vec<(OsString, OsString)>,
        folder: Option<&str>,
    ) -> Result<(Arc<Self>, ChildStdin, ChildStdout)> {
        let mut program = Command::new(command);
        program.args(args).env_clear().envs(environment);
        platform::lead_group(&mut program);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            program.current_dir(folder);
        }
        let mut child = program.spawn().with_context(|| {
            let place = folder.map(|folder| format!(" in the folder {folder}")).unwrap_or_default();
            format!("cannot start the program {command:?}{place}")
        })?;
        let group = child.id();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read nothing; kill -9 0"]).env_clear();
        platform::join_group(&mut shell, group);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut watcher = match shell.spawn() {
            Ok(watcher) => watcher,
            Err(error) => {
                platform::kill_group(group);
                _ = child.wait();
                return Err(error).with_context(|| format!("cannot watch the program {command:?}"));
            }
        };
        let watched = watcher.stdin.take();
        let state = Mutex::new(State { child, watcher, _watched: watched, ended: false });
        let (Some(input), Some(output), Some(errors)) = pipes else { bail!("a process without pipes") };
        ioctl_fionbio(&errors, true).context("cannot use the pipes of a process")?;
        let readable = errors.as_fd().try_clone_to_owned().context("cannot use the pipes of a process")?;
        let process = Arc::new(Self { group, state, printed: Mutex::new(Printed::new(errors, format!("the server {name}"))) });
        let reader = process.clone();
        let read = move || {
            while reader.read_printed() {
                _ = poll(&mut [PollFd::new(&readable, PollFlags::IN)], None);
            }
        };
        thread::Builder::new()
            .name("mcp-errors".to_owned())
            .spawn(read)
            .context("cannot start a thread for the output of a server")?;
        Ok((process, input, output))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs new output; returns false once no more can come.
    fn read_printed(&self) -> bool {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.read();
        printed.is_open()
    }

    /// Returns the last lines of the error stream, for the end of a message.
    pub(super) fn last_words(&self) -> String {
        self.read_printed();
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).last_words()
    }

    /// Waits this long for the process to end, then kills it with its group. Returns its exit status.
    pub(super) fn end(&self, grace: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        loop {
            let mut state = self.state();
            let status = if state.ended { None } else { state.child.try_wait().ok().flatten() };
            if state.ended || status.is_some() || started.elapsed() >= grace {
                if !state.ended {
                    // The watcher belongs to the group and has not been waited for, so no other group can have this id.
                    platform::kill_group(self.group);
                    // A child that left the group would otherwise be waited for without end.
                    _ = state.child.kill();
                    state.ended = true;
                    _ = state.watcher.wait();
                }
                let killed = state.child.wait().ok();
                return status.or(killed);
            }
            drop(state);
            thread::sleep(LOOK);
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Returns the end of a process in words that follow its name.
pub(super) fn ended(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with exit status {code}"),
        Some((None, Some(signal))) => format!("was killed by signal {signal}"),
        _ => "ended".to_owned(),
    }
}
