//! Upload during the run, by the client's `wandb beta sync --live` in a child process.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::super::Ending;
use burnish_util::{no_follow, platform};

const SLICE: Duration = Duration::from_millis(20);
/// Time after which a message reports the wait for the upload.
const MESSAGE_DELAY: Duration = Duration::from_secs(2);
/// A shell script that kills a process group once its input is closed, which happens when the trainer ends for any reason.
const GUARD: &str = "read -r line; kill -s KILL -- \"-$1\"";
/// Variables that concern the writing of a run; they would change the child's upload.
const NOT_FOR_THE_CHILD: [&str; 2] = ["WANDB_RUN_ID", "WANDB_RESUME"];

/// A client process that uploads a run until its exit record is written. It is killed when dropped.
#[derive(Debug)]
pub(super) struct LiveUpload {
    child: Child,
    guard: Child,
    log: PathBuf,
    ended: bool,
}

impl LiveUpload {
    /// Starts `client` on the run in `folder`; its output goes to `logs/sync.log` there.
    pub(super) fn start(client: &Path, folder: &Path, proxy: Option<&str>) -> Result<Self> {
        let log = folder.join("logs/sync.log");
        let output = open_log(&log).with_context(|| format!("cannot open {}", log.display()))?;
        let mut command = Command::new(client);
        // The client writes files into its working directory.
        command.args(["beta", "sync", "--live"]).arg(folder).current_dir(folder.join("logs"));
        for name in NOT_FOR_THE_CHILD {
            command.env_remove(name);
        }
        if let Some(proxy) = proxy {
            command.envs([("https_proxy", proxy), ("http_proxy", proxy)]);
        }
        // In a separate process group, so that Ctrl-C reaches only the trainer, which still has to write the exit record.
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        platform::lead_group(&mut command);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", client.display()))?;
        match guard(&child) {
            Ok(guard) => Ok(Self { child, guard, log, ended: false }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Returns true if the client still runs.
    ///
    /// # Errors
    /// If the client has failed, with the last line of its output; reported once.
    pub(super) fn check(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let Some(status) = self.child.try_wait().context("cannot wait for the client")? else { return Ok(true) };
        self.end();
        if status.success() { Ok(false) } else { bail!("{}", self.failure(status)) }
    }

    /// Waits until everything is uploaded. Call this once the exit record is written.
    ///
    /// # Errors
    /// If the client failed, or did not finish within `bound` (sooner after a stop request).
    pub(super) fn finish(mut self, bound: Duration, ending: &Ending) -> Result<()> {
        let (started, mut warned) = (Instant::now(), false);
        while self.check()? {
            if started.elapsed() >= MESSAGE_DELAY && !std::mem::replace(&mut warned, true) {
                let left = ending.time_left(bound).as_secs();
                tracing::info!("W&B: waiting for the upload, at most {left} seconds; Ctrl-C does not wait for it");
            }
            if ending.time_left(bound).is_zero() {
                bail!("the upload was not done after {} seconds (see {})", started.elapsed().as_secs(), self.log.display());
            }
            thread::sleep(SLICE);
        }
        Ok(())
    }

    fn failure(&self, status: ExitStatus) -> String {
        let printed = fs::read(&self.log).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it printed nothing");
        format!("the client ended with {status}: {last} (see {})", self.log.display())
    }

    /// Ends the guard before the child, so that it never kills a process group whose id has been reused.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            end(&mut self.guard);
            end(&mut self.child);
        }
    }
}

impl Drop for LiveUpload {
    fn drop(&mut self) {
        self.end();
    }
}

fn open_log(path: &Path) -> Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    no_follow::open(path, OpenOptions::new().create(true).append(true))
}

fn guard(child: &Child) -> Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", GUARD, "sh", &child.id().to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    platform::lead_group(&mut command);
    command.spawn().context("cannot start sh")
}

/// Kills a child and its process group, even if the child has ended.
fn end(child: &mut Child) {
    // The child may have ended while processes that it started still run.
    platform::kill_group(child.id());
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::super::Exit;
    use super::*;
    use burnish_util::interrupt::Interrupt;

    /// Starts a client that runs `script`, on a run in `dir`.
    fn start(dir: &Path, script: &str) -> LiveUpload {
        let client = dir.join("wandb");
        fs::write(&client, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
        LiveUpload::start(&client, dir, Some("http://proxy")).unwrap()
    }

    #[test]
    fn the_client_gets_its_arguments_and_its_end_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let ending = Ending::uninterrupted(Exit::Finished);
        start(dir.path(), "echo \"$@\" $https_proxy").finish(Duration::from_secs(60), &ending).unwrap();
        let log = fs::read_to_string(dir.path().join("logs/sync.log")).unwrap();
        assert_eq!(log, format!("beta sync --live {} http://proxy\n", dir.path().display()));
        let error = start(dir.path(), "echo no key; exit 3").finish(Duration::from_secs(60), &ending).unwrap_err().to_string();
        assert!(error.contains("exit status: 3: no key"), "{error}");
        let error = start(dir.path(), "sleep 60").finish(Duration::ZERO, &ending).unwrap_err().to_string();
        assert!(error.contains("not done after 0 seconds"), "{error}");
        // After the end of a run, a signal also ends the wait of up to an hour.
        let interrupt = Interrupt::default();
        let ending = Ending::new(Exit::Finished, &interrupt);
        interrupt.ask();
        let error = start(dir.path(), "sleep 3600").finish(Duration::from_secs(3600), &ending).unwrap_err().to_string();
        assert!(error.contains("not done after"), "{error}");
    }

    #[test]
    fn the_client_and_its_children_do_not_outlive_the_trainer() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("pid");
        let mut live = start(dir.path(), &format!("sleep 60 & echo $! > {0}.new; mv {0}.new {0}; wait", note.display()));
        let started = Instant::now();
        let wait = |done: &mut dyn FnMut() -> bool| {
            while !done() {
                assert!(started.elapsed() < Duration::from_secs(60));
                thread::sleep(SLICE);
            }
        };
        wait(&mut || note.exists());
        let grandchild = fs::read_to_string(&note).unwrap();
        // The pipe is closed too when the process that holds it is killed.
        drop(live.guard.stdin.take());
        wait(&mut || live.check().is_err());
        // The grandchild has ended, or is a zombie whose new parent has not yet waited for it.
        let grandchild = grandchild.trim().parse().unwrap();
        wait(&mut || platform::process_name(grandchild).is_none());
    }
}
