//! A script as a whole.

use super::env::ShellEnv;
use super::machine::Machine;
use super::state::Flow;
use super::text::{ProgramCall, ShellError, Unknown};

/// The stack of the thread that reads a script: parser and evaluator go down it with every bracket and block.
const STACK: usize = 256 << 20;

/// The programs that a script would start, in order.
#[derive(Debug)]
pub struct ScriptCalls {
    pub calls: Vec<ProgramCall>,
    pub unknowns: Vec<Unknown>,
    /// The line at which the script ends early.
    pub ended: Option<usize>,
}

/// Reads a script. `is_meant` says which programs, by their words, a reader asks for.
///
/// A script that tests for a file, and ends where it is missing, asks about the machine that it is written for, which may be another.
/// So where no program that is meant is started, the script is read again, and what tests for missing files is not known.
///
/// # Errors
/// If it is no shell script, or beyond the limits of steps, size and depth, or if no program is started on the line that is meant.
pub fn read(script: &str, env: &ShellEnv, is_meant: &(dyn Fn(&[String]) -> bool + Sync)) -> Result<ScriptCalls, ShellError> {
    let is_meant = |call: &ProgramCall| env.line.is_none_or(|line| line == call.line) && is_meant(&call.words);
    let read = || {
        let first = evaluate(script, env, false)?;
        let again = || evaluate(script, env, true).ok().filter(|read| read.calls.iter().any(is_meant));
        if first.calls.iter().any(is_meant) { Ok(first) } else { Ok(again().unwrap_or(first)) }
    };
    let mut read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        let failed = || ShellError { line: 1, message: "the script cannot be read".into() };
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?
    })?;
    if let Some(line) = env.line {
        let mut lines: Vec<String> = read.calls.iter().map(|call| call.line.to_string()).collect();
        lines.dedup();
        read.calls.retain(|call| call.line == line);
        if read.calls.is_empty() {
            let message = format!("no program is started on this line; some are on {}", lines.join(", "));
            return Err(ShellError { line, message });
        }
    }
    Ok(read)
}

/// Reads a script once. With `is_elsewhere`, a test for a file that is missing here cannot be known.
fn evaluate(script: &str, env: &ShellEnv, is_elsewhere: bool) -> Result<ScriptCalls, ShellError> {
    let mut machine = Machine::new(env, is_elsewhere);
    let flow = machine.script(script)?;
    let ended = (flow == Flow::Exit).then_some(machine.line);
    Ok(ScriptCalls { calls: machine.calls, unknowns: machine.unknowns, ended })
}
