//! The socket to which the processes of conversations connect. It lies in a folder that only this user can enter, and each client
//! must present its token, because processes of other conversations can reach the socket too.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, process};

use anyhow::{Context, Result, bail};
use burnish_util::lock::is_alive;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The longest folder name for which the socket's path fits into the 104 bytes that every system allows.
const LONGEST_FOLDER: usize = 60;
const ATTEMPTS: usize = 100;
/// The name of the socket, and the length of the token in the name of its folder.
const SOCKET: &str = "socket";
const TOKEN: usize = 12;

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
        sweep(&temporary);
        for _ in 0..ATTEMPTS {
            let folder = temporary.join(format!("burnish-{}-{}", process::id(), &random_token()?[..TOKEN]));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    let listener = UnixListener::bind(folder.join(SOCKET));
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
        self.folder.join(SOCKET)
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

/// Removes the folders of processes that were killed. A folder stays if its process lives, if it has other files, or if something
/// listens at its socket, as that of a container with its own process ids may.
fn sweep(temporary: &Path) {
    let is_dead = |name: &str| {
        let (process, token) = name.strip_prefix("burnish-")?.split_once('-')?;
        let process: u32 = process.parse().ok()?;
        let is_token = token.len() == TOKEN && token.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(is_token && process != process::id() && !is_alive(process))
    };
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || entry.file_name().to_str().and_then(is_dead) != Some(true) {
            continue;
        }
        let socket = entry.path().join(SOCKET);
        if UnixStream::connect(&socket).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            _ = fs::remove_file(&socket).and_then(|()| fs::remove_dir(entry.path()));
        }
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

    #[test]
    fn folders_of_killed_processes_are_swept_and_others_stay() {
        let temporary = tempfile::tempdir().unwrap();
        let mut ended = process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (dead, own) = (ended.id(), process::id());
        let folder = |name: String| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let left = folder(format!("burnish-{dead}-0123456789ab"));
        let stay = [
            folder(format!("burnish-{dead}-ab0123456789")),
            folder(format!("burnish-{own}-0123456789ab")),
            folder(format!("burnish-{dead}-mine")),
        ];
        let listens = UnixListener::bind(stay[0].join(SOCKET)).unwrap();
        for ended in [&left, &stay[1], &stay[2]] {
            drop(UnixListener::bind(ended.join(SOCKET)).unwrap());
        }
        let full = folder(format!("burnish-{dead}-fedcba987654"));
        fs::write(full.join("mine"), "").unwrap();
        sweep(temporary.path());
        assert!(!left.exists() && full.join("mine").exists() && stay.iter().all(|folder| folder.join(SOCKET).exists()));
        drop(listens);
    }
}
