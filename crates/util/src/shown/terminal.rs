//! The output streams of the process. All printing uses these functions: `println!` and `eprintln!` panic once the reader is gone
//! (`| tee` after Ctrl-C), and clippy denies them elsewhere. Most output contains untrusted text (models, data, servers, reward
//! functions, file names), so control characters are escaped and secrets are hidden here.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::excerpt::cut_lines;
use super::printable::{printable, printable_styled};
use super::secret::hide;
use crate::platform;

/// Prints text for people on standard output. Ignores a reader that stopped, such as `head`, and a closed terminal.
///
/// # Errors
/// If standard output cannot be written to, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    write(&printable(&hide(text)))
}

/// Prints text with our own colours; the rest of the text must be printable.
///
/// # Errors
/// The errors of [`print()`].
pub fn print_styled(text: &str) -> io::Result<()> {
    write(&printable_styled(&hide(text)))
}

/// Prints text that a program may read, such as YAML or JSON: unchanged, except on a terminal.
///
/// # Errors
/// The errors of [`print()`].
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

/// Returns the number of columns of tables on standard output: the columns of the terminal, at least 80; 80 if the output is not
/// a terminal.
pub fn columns() -> u16 {
    const FEWEST: u16 = 80;
    console::Term::stdout().size_checked().map_or(FEWEST, |(_, columns)| columns.max(FEWEST))
}

/// Returns true if standard output has no reader any more: the pipe or the terminal is closed.
fn has_no_reader(error: &io::Error) -> bool {
    let is_device = || platform::file_of(io::stdout()).is_ok_and(|file| platform::is_device(&file));
    error.kind() == ErrorKind::BrokenPipe || platform::is_hung_up(error) && is_device()
}

/// Writes to standard error. Ignores errors, since they cannot be reported anywhere.
pub fn say(text: &str) {
    _ = io::stderr().lock().write_all(printable(&cut_lines(&hide(text))).as_bytes());
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Turns off the log on standard error and the progress bar, for all ranks except one. Fatal errors are still printed.
pub fn quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Writes a log line to standard error, with our own colours if enabled. `tracing_subscriber` escapes control characters in
/// values.
pub fn say_styled(text: &str) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    let text = hide(text);
    let text = cut_lines(&text);
    let shown = if colours_on_stderr() { printable_styled(&text) } else { printable(&text) };
    _ = io::stderr().lock().write_all(shown.as_bytes());
}

/// Returns true if standard output is a terminal with colours; see [`colours_on_stderr`].
pub fn colours_on_stdout() -> bool {
    console::colors_enabled()
}

/// Returns true if standard error has colours: on a terminal, except with `NO_COLOR`, `CLICOLOR=0` or `TERM=dumb`; anywhere with
/// `CLICOLOR_FORCE`. For standard output, use [`console::colors_enabled`].
pub fn colours_on_stderr() -> bool {
    console::colors_enabled_stderr()
}

/// Returns true if standard error is a terminal whose lines can be overwritten.
pub fn has_bar() -> bool {
    !QUIET.load(Ordering::Relaxed) && io::stderr().is_terminal() && !console::is_dumb()
}
