//! The socket to which the processes of conversations connect. It lies in a folder that only this user can enter, and each client
//! must present its token, because processes of other conversations can reach the socket too.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, process};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The longest folder name for which the socket's path fits into the 104 bytes that every system allows.
const LONGEST_FOLDER: usize = 60;
const ATTEMPTS: usize = 100;

pub(super) struct Socket {
    folder: PathBuf,
    listener: UnixListener,
}

/// A process that has connected.
pub(super) struct SocketClient {
    pub connection: UnixStream,
    /// The pipe with its output.
    pub printed: OwnedFd,
}

impl Socket {
    /// Creates the folder and the socket.
    ///
    /// # Errors
    /// A folder for temporary files that is not writable.
    pub(super) fn open() -> Result<Self> {
        let temporary = Some(env::temp_dir()).filter(|folder| folder.as_os_str().len() <= LONGEST_FOLDER);
        let temporary = temporary.unwrap_or_else(|| PathBuf::from("/tmp"));
        for _ in 0..ATTEMPTS {
            let folder = temporary.join(format!("burnish-{}-{}", process::id(), &random_token()?[..12]));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    let listener = UnixListener::bind(folder.join("socket"));
                    let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
                    if listener.is_err() {
                        let _ = fs::remove_dir_all(&folder);
                    }
                    let listener = listener.with_context(|| format!("cannot make a socket in {}", folder.display()))?;
                    return Ok(Self { folder, listener });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot make the folder {}", folder.display())),
            }
        }
        bail!("cannot make a folder in {}", temporary.display())
    }

    /// Returns the path of the socket.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Waits for the client with this token; `None` if it does not connect in time.
    ///
    /// # Errors
    /// A socket that cannot be used.
    pub(super) fn wait_for(&self, token: &str, at_most: Duration) -> Result<Option<SocketClient>> {
        let started = Instant::now();
        loop {
            let left = at_most.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            wait(&self.listener, left);
            match self.listener.accept() {
                Ok((connection, _)) => {
                    if let Some(client) = accepted(connection, token, left) {
                        return Ok(Some(client));
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error).context("the socket cannot accept connections"),
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns a token that cannot be guessed.
///
/// # Errors
/// A system without `/dev/urandom`.
pub fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).context("cannot read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Waits until something can be read.
fn wait(from: &impl AsFd, at_most: Duration) {
    let at_most = Timespec { tv_sec: at_most.as_secs() as i64, tv_nsec: at_most.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&at_most));
}

/// Returns the client at the other end, if it presents the token.
fn accepted(connection: UnixStream, token: &str, at_most: Duration) -> Option<SocketClient> {
    let started = Instant::now();
    let (mut received_token, mut printed) = (Vec::new(), None);
    while received_token.len() <= token.len() && !received_token.ends_with(b"\n") {
        let left = at_most.saturating_sub(started.elapsed());
        if left.is_zero() {
            return None;
        }
        wait(&connection, left);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; 64];
        let received = recvmsg(&connection, &mut [IoSliceMut::new(&mut bytes)], &mut rights, RecvFlags::empty()).ok()?;
        if received.bytes == 0 {
            return None;
        }
        received_token.extend(&bytes[..received.bytes]);
        for message in rights.drain() {
            if let RecvAncillaryMessage::ScmRights(mut files) = message {
                printed = files.next().or(printed);
            }
        }
    }
    (received_token.strip_suffix(b"\n")? == token.as_bytes()).then_some(())?;
    let printed = printed?;
    connection.set_nonblocking(true).ok()?;
    rustix::io::ioctl_fionbio(&printed, true).ok()?;
    rustix::io::fcntl_setfd(&printed, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(SocketClient { connection, printed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn clients_without_the_token_are_refused_and_the_folder_is_removed() {
        let socket = Socket::open().unwrap();
        let path = socket.path();
        let mut other = UnixStream::connect(&path).unwrap();
        other.write_all(b"another token\n").unwrap();
        assert!(socket.wait_for(&random_token().unwrap(), Duration::from_millis(200)).unwrap().is_none());
        let folder = path.parent().unwrap();
        assert!(folder.exists());
        drop(socket);
        assert!(!folder.exists());
    }
}
