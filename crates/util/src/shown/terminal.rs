//! The two output streams of the process. Everything that is printed goes through here: `println!` and `eprintln!` panic once the
//! reader is gone, as behind `| tee` after Ctrl-C, and clippy denies them elsewhere. Texts of others (models, data, servers, reward
//! functions, file names) are in most of it, so control characters are escaped here, once; and secrets are hidden.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::printable::{printable, printable_styled};
use super::secret::hide;

/// Prints text for people on standard output. It is no error if the reader, such as `head`, has stopped reading, or if the terminal was
/// closed.
///
/// # Errors
/// If standard output cannot be written to, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    write(&printable(&hide(text)))
}

/// Prints text that has colours of ours, and whose other parts are printable.
///
/// # Errors
/// As [`print()`].
pub fn print_styled(text: &str) -> io::Result<()> {
    write(&printable_styled(&hide(text)))
}

/// Prints text that a program may read, such as YAML or JSON: it is left as it is, except on a terminal.
///
/// # Errors
/// As [`print()`].
pub fn print_data(text: &str) -> io::Result<()> {
    if io::stdout().is_terminal() { print(text) } else { write(&hide(text)) }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if !has_no_reader(&error) => Err(error),
        _ => Ok(()),
    }
}

/// True if nobody can read standard output any more: the other end of a pipe is closed, or the terminal is.
fn has_no_reader(error: &io::Error) -> bool {
    let is_device = || fstat(io::stdout()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_char_device());
    error.kind() == ErrorKind::BrokenPipe || error.raw_os_error() == Some(Errno::IO.raw_os_error()) && is_device()
}

/// Writes to standard error. Errors are ignored, since there is nowhere left to report them.
pub fn say(text: &str) {
    _ = io::stderr().lock().write_all(printable(&hide(text)).as_bytes());
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Stops the log on standard error, and the progress bar, of a process that trains with another one, which has its own. Errors that end
/// the process are still said.
pub fn quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Writes a line of the log to standard error, which has colours of ours where there are any; `tracing_subscriber` escapes those of
/// others.
pub fn say_styled(text: &str) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    let text = hide(text);
    let shown = if colours_on_stderr() { printable_styled(&text) } else { printable(&text) };
    _ = io::stderr().lock().write_all(shown.as_bytes());
}

/// True if standard error is shown with colours: on a terminal, except with `NO_COLOR`, `CLICOLOR=0` or `TERM=dumb`; anywhere
/// with `CLICOLOR_FORCE`. [`console::colors_enabled`] is the same for standard output.
pub fn colours_on_stderr() -> bool {
    console::colors_enabled_stderr()
}

/// True if standard error is a terminal whose lines can be overwritten.
pub fn has_bar() -> bool {
    !QUIET.load(Ordering::Relaxed) && io::stderr().is_terminal() && !console::is_dumb()
}
