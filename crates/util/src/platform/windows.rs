//! Windows, where the crates below the program compile: files, settings, data, models, numbers. Processes of Python and servers
//! need Unix, and their crates refuse to be built.

use std::ffi::{OsStr, OsString, c_int};
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, MetadataExt};
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use sysinfo::System;

pub use std::os::windows::fs::symlink_file as symlink;

/// Windows has no signals except Ctrl-C and `taskkill`.
pub(crate) const ASK: &[c_int] = &[];
pub(crate) const HANGUP: Option<c_int> = None;
pub(crate) const NOTICE: Option<c_int> = None;
pub(crate) const FILE_LIMIT: Option<c_int> = None;

/// Returns the name of this machine.
pub fn host_name() -> String {
    System::host_name().unwrap_or_default()
}

/// Returns the name and the version of the system.
pub fn system_version() -> String {
    format!("Windows-{}", System::os_version().unwrap_or_default())
}

/// Returns `None`: Windows does not report the most memory to `sysinfo`.
pub fn peak_memory() -> Option<u64> {
    None
}

/// Returns `None`: a process of Windows does not ignore signals from its start.
pub(crate) fn is_ignored(_: c_int) -> Option<bool> {
    None
}

/// Returns `None`: Windows has no limit on addresses.
pub(crate) fn address_limit() -> Option<u64> {
    None
}

/// Returns `None`: the parent process may have ended, and its id may be reused.
pub fn parent_id() -> Option<u32> {
    None
}

/// Returns `None`: the free space of a disk is not determined.
pub fn free_space(_: &Path) -> Option<u64> {
    None
}

/// Creates this user's own folder for temporary files: Windows has one for each user.
///
/// # Errors
/// If the folder cannot be created.
pub fn temporary_folder() -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join("burnish");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Returns the wall-clock time since the first call, in place of the CPU time of this thread.
pub fn thread_time() -> Duration {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed()
}

/// Returns true if both were created at the same time and have the same size: the standard library shows no ids of files.
pub fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.creation_time(), one.file_size()) == (other.creation_time(), other.file_size())
}

/// Keeps a file read-only if the file that it replaces was.
pub(crate) fn keep_access(file: &File, there: &Metadata) {
    _ = file.set_permissions(there.permissions());
}

/// Returns the kind of a file that is neither a file nor a folder, in words.
pub(crate) fn special_kind(_: FileType) -> &'static str {
    "a device"
}

/// Returns false: named pipes of Windows are not in folders.
pub(crate) fn is_pipe(_: FileType) -> bool {
    false
}

/// Opens a device for writing.
///
/// # Errors
/// If the device cannot be opened.
pub(crate) fn open_pipe(path: &Path) -> io::Result<Option<File>> {
    OpenOptions::new().write(true).open(path).map(Some)
}

/// Makes an open of a link open the link itself, which cannot be written to.
pub(crate) fn without_links(options: &mut OpenOptions) {
    const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
    std::os::windows::fs::OpenOptionsExt::custom_flags(options, FILE_FLAG_OPEN_REPARSE_POINT);
}

/// Returns the file behind one of this process's own streams.
pub(crate) fn file_of(stream: impl AsHandle) -> io::Result<File> {
    stream.as_handle().try_clone_to_owned().map(File::from)
}

/// Returns false: a console of Windows ends its processes.
pub(crate) fn is_hung_up(_: &io::Error) -> bool {
    false
}

/// Returns false: see [`is_hung_up`].
pub(crate) fn is_device(_: &File) -> bool {
    false
}

/// Writes bytes at a position of a file.
///
/// # Errors
/// If the file cannot be written.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.seek_write(bytes, at)?;
        (bytes, at) = (&bytes[written..], at + written as u64);
    }
    Ok(())
}

/// Reads bytes at a position of a file.
///
/// # Errors
/// If the file ends before, or cannot be read.
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = file.seek_read(bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, at) = (&mut bytes[read..], at + read as u64);
    }
    Ok(())
}

/// Returns the bytes of a text of the system in Rust's encoding, which contains UTF-8.
pub fn bytes_of(text: &OsStr) -> &[u8] {
    text.as_encoded_bytes()
}

/// Returns the text of the system with these bytes; bytes that are not UTF-8 are replaced.
pub fn text_of(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
