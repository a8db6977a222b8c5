//! Functions that Linux, macOS and other Unix systems share.

use std::ffi::{OsStr, OsString, c_int};
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, statvfs};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, kill_process_group, setrlimit};
use rustix::process::{WaitId, WaitIdOptions, waitid};
use rustix::time::{ClockId, clock_gettime};

pub use std::os::unix::fs::symlink;

/// Signals that never end the process: the terminal was closed, the scheduler gives notice, the soft limit of CPU time is
/// reached. They may repeat, or occur together with other bits.
pub(crate) const ASK: &[c_int] = &[signal_hook::consts::SIGHUP, signal_hook::consts::SIGUSR2, signal_hook::consts::SIGXCPU];
/// The signal that a closed terminal sends.
pub(crate) const HANGUP: Option<c_int> = Some(signal_hook::consts::SIGHUP);
/// The notice of launchers and schedulers that time is running out.
pub(crate) const NOTICE: Option<c_int> = Some(signal_hook::consts::SIGUSR1);
/// The signal for a write beyond the file size limit.
pub(crate) const FILE_LIMIT: Option<c_int> = Some(signal_hook::consts::SIGXFSZ);

/// Returns the name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the name and the version of the system, such as `Linux-6.1.0`.
pub fn system_version() -> String {
    let about = rustix::system::uname();
    format!("{}-{}", about.sysname().to_string_lossy(), about.release().to_string_lossy())
}

/// Returns the limit on this process's addresses in bytes (`ulimit -v`).
pub(crate) fn address_limit() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Raises this process's limit on open files to `requested`, or as far as the system allows. Returns the limit; `None` = unlimited.
pub fn raise_open_files(requested: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = maximum.map_or(requested, |maximum| maximum.min(requested));
    let is_raised = current.is_some_and(|current| current < requested)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok();
    if is_raised { Some(raised) } else { current }
}

/// Returns the free bytes of the file system with a file or folder.
pub fn free_space(there: &Path) -> Option<u64> {
    let found = statvfs(there).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Creates this user's own folder for temporary files. A folder of another user could change after its files were compared.
///
/// # Errors
/// If the folder cannot be created or belongs to another user.
pub fn temporary_folder() -> io::Result<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("burnish-{user}"));
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    let found = created.and_then(|()| std::fs::symlink_metadata(&folder));
    let found = found.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    if found.is_dir() && found.uid() == user {
        return Ok(folder);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} belongs to another user", folder.display())))
}

/// Returns the CPU time of this thread so far.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Returns the id of the parent process.
pub fn parent_id() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// Makes a command's process the leader of a new process group, which [`kill_group`] kills as a whole.
pub fn lead_group(command: &mut Command) {
    command.process_group(0);
}

/// Makes a command's process a member of the process group with this leader.
pub fn join_group(command: &mut Command, leader: u32) {
    command.process_group(leader as i32);
}

/// Kills a process group by the id of its leader, who must not have been waited for. Errors are ignored: the group may have ended.
pub fn kill_group(leader: u32) {
    if let Some(group) = pid(leader) {
        _ = kill_process_group(group, Signal::KILL);
    }
}

/// Kills a process that has not been waited for. Errors are ignored.
pub fn kill(process: u32) {
    if let Some(process) = pid(process) {
        _ = kill_process(process, Signal::KILL);
    }
}

/// Asks a child by SIGUSR1 where its code is. Returns false if the signal cannot be sent.
pub fn ask_for_place(process: u32) -> bool {
    pid(process).is_some_and(|process| kill_process(process, Signal::USR1).is_ok())
}

/// Returns true if a child has ended. The child is not reaped, so its process group id cannot be reused.
pub fn has_ended(child: u32) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid(child).is_none_or(|child| !matches!(waitid(WaitId::Pid(child), options), Ok(None)))
}

fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(id.try_into().ok()?)
}

/// Returns true if both are the same file.
pub fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Gives a new file the mode and owner of the file that it replaces, as far as permissions allow.
pub(crate) fn keep_access(file: &File, there: &Metadata) {
    // The order matters: changing the owner clears bits of the mode.
    _ = fchown(file, Some(there.uid()), Some(there.gid()));
    _ = file.set_permissions(there.permissions());
}

/// Returns true if a file may be run as a program.
pub fn is_program(file: &Metadata) -> bool {
    file.is_file() && file.permissions().mode() & 0o111 != 0
}

/// Returns the kind of a file that is neither a file nor a folder, in words.
pub(crate) fn special_kind(file: FileType) -> &'static str {
    match file {
        file if file.is_fifo() => "a named pipe",
        file if file.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Returns true for a named pipe.
pub(crate) fn is_pipe(file: FileType) -> bool {
    file.is_fifo()
}

/// Opens a named pipe for writing; `None` if it has no reader. A plain open would wait for a reader.
///
/// # Errors
/// If the pipe cannot be opened.
pub(crate) fn open_pipe(path: &Path) -> io::Result<Option<File>> {
    match rustix::fs::open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NXIO) => Ok(None),
        opened => {
            let pipe = opened?;
            // Writes may block.
            fcntl_setfl(&pipe, fcntl_getfl(&pipe)? - OFlags::NONBLOCK)?;
            Ok(Some(pipe.into()))
        }
    }
}

/// Makes an open fail if the path is a link.
pub(crate) fn without_links(options: &mut OpenOptions) {
    options.custom_flags(OFlags::NOFOLLOW.bits() as c_int);
}

/// Returns the file behind one of this process's own streams.
pub(crate) fn file_of(stream: impl std::os::fd::AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

/// Returns true for the error of a terminal that was closed.
pub(crate) fn is_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Returns true for a device, such as a terminal.
pub(crate) fn is_device(file: &File) -> bool {
    file.metadata().is_ok_and(|there| there.file_type().is_char_device())
}

/// Writes bytes at a position of a file, and leaves its current position alone.
///
/// # Errors
/// If the file cannot be written.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// Reads bytes at a position of a file, and leaves its current position alone.
///
/// # Errors
/// If the file ends before, or cannot be read.
pub fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(bytes, at)
}

/// Returns the bytes of a text of the system, which may not be UTF-8.
pub fn bytes_of(text: &OsStr) -> &[u8] {
    text.as_bytes()
}

/// Returns the text of the system with these bytes, the opposite of [`bytes_of`].
pub fn text_of(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}
