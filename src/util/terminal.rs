//! The two output streams of the process. Everything that is printed goes through here: `println!` and `eprintln!` panic once the
//! reader is gone, as behind `| tee` after Ctrl-C, and clippy denies them elsewhere.

use std::io::{self, ErrorKind, IsTerminal, Write};

/// Prints on standard output. It is no error if the reader, such as `head`, has stopped reading.
///
/// # Errors
/// If standard output cannot be written to, as on a full disk.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Writes to standard error. Errors are ignored, since there is nowhere left to report them.
pub fn say(bytes: &[u8]) {
    _ = io::stderr().lock().write_all(bytes);
}

/// True if standard error is shown with colours: on a terminal, except with `NO_COLOR`, `CLICOLOR=0` or `TERM=dumb`; anywhere
/// with `CLICOLOR_FORCE`. [`console::colors_enabled`] is the same for standard output.
pub fn colours_on_stderr() -> bool {
    console::colors_enabled_stderr()
}

/// True if standard error is a terminal whose lines can be overwritten.
pub fn has_bar() -> bool {
    io::stderr().is_terminal() && !console::is_dumb()
}
