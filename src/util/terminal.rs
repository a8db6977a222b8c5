//! The two streams of the process. Everything that is printed goes through here: `println!` and `eprintln!` panic where nobody reads any
//! more, as behind `| tee` and Ctrl-C, and clippy denies them elsewhere.

use std::io::{self, ErrorKind, IsTerminal, Write};

/// Prints on standard output. A reader that has seen enough, such as `head`, is no failure.
///
/// # Errors
/// It cannot be written to, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes to standard error. What cannot be written is dropped: there is nobody left to tell.
pub fn say(bytes: &[u8]) {
    _ = io::stderr().lock().write_all(bytes);
}

/// Whether standard error is shown with colours: on a terminal, but for `NO_COLOR`, `CLICOLOR=0` and `TERM=dumb`; anywhere with
/// `CLICOLOR_FORCE`. [`console::colors_enabled`] says the same of standard output.
pub fn colours_on_stderr() -> bool {
    console::colors_enabled_stderr()
}

/// Whether standard error is a terminal whose lines can be written over.
pub fn has_bar() -> bool {
    io::stderr().is_terminal() && !console::is_dumb()
}
