//! A script as a whole.

use super::machine::Machine;
use super::state::Flow;
use super::text::{Call, Hole, ShellError};
use std::path::PathBuf;

/// The stack of the thread that reads a script: parser and evaluator go down it with every bracket and block.
const STACK: usize = 256 << 20;

/// What a script finds when it starts.
pub struct Surroundings<'a> {
    /// `$0`.
    pub name: &'a str,
    /// `$1` and the following.
    pub arguments: &'a [String],
    /// The working folder.
    pub folder: String,
    /// The folder below which files may be read for `source` and `bash FILE`; `None` for a text that is no file.
    pub sources: Option<PathBuf>,
    /// Looks up a variable that the script does not set itself.
    pub environment: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// The time of `$(date)`, in seconds since 1970.
    pub now: i64,
}

impl Surroundings<'static> {
    /// Returns the surroundings of a text that is no file: without arguments, variables and files.
    pub fn of_text(name: &'static str) -> Self {
        Self { name, arguments: &[], folder: "/".into(), sources: None, environment: &|_| None, now: 0 }
    }
}

/// The programs that a script would start, in order.
#[derive(Debug)]
pub struct Read {
    pub calls: Vec<Call>,
    pub holes: Vec<Hole>,
    /// The line at which the script ends early.
    pub ended: Option<usize>,
}

/// Reads a script.
///
/// # Errors
/// If it is no shell script, or beyond the limits of steps, size and depth.
pub fn read(script: &str, around: &Surroundings) -> Result<Read, ShellError> {
    let evaluate = || {
        let mut machine = Machine::new(around);
        let flow = machine.script(script)?;
        let ended = (flow == Flow::Exit).then_some(machine.line);
        Ok(Read { calls: machine.calls, holes: machine.holes, ended })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluate);
        let failed = || ShellError { line: 1, message: "the script cannot be read".into() };
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?
    })
}
