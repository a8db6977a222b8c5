//! The evaluation of a whole script.

use super::env::ShellEnv;
use super::machine::Machine;
use super::state::Flow;
use super::text::{ProgramCall, ShellError, Unknown};
use burnish_util::secret;

/// The stack size of the evaluating thread: parser and evaluator recurse with every bracket and block.
const STACK: usize = 256 << 20;

/// The programs that a script would start, in order.
#[derive(Debug)]
pub struct ScriptCalls {
    pub calls: Vec<ProgramCall>,
    pub unknowns: Vec<Unknown>,
    /// Line of an `exit` that ends the script early.
    pub ended: Option<usize>,
}

/// Evaluates a script. `is_meant` returns true for the words of a program that the caller looks for.
///
/// A script may be written for another machine, and exit because a file is missing on this one. If no program that the caller looks
/// for is started, a second evaluation therefore treats tests for missing files as unknown.
///
/// # Errors
/// If the text is not a shell script, exceeds the limits of steps, size or depth, or starts no program on the requested line.
pub fn read(script: &str, env: &ShellEnv, is_meant: &(dyn Fn(&[String]) -> bool + Sync)) -> Result<ScriptCalls, ShellError> {
    secret::remember_in(script);
    let is_meant = |call: &ProgramCall| env.line.is_none_or(|line| line == call.line) && is_meant(&call.words);
    let read = || {
        let first = evaluate(script, env, false)?;
        let again = || evaluate(script, env, true).ok().filter(|read| read.calls.iter().any(is_meant));
        if first.calls.iter().any(is_meant) { Ok(first) } else { Ok(again().unwrap_or(first)) }
    };
    let mut read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        let failed = || ShellError { line: 1, message: "the script cannot be evaluated".into() };
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?
    })?;
    // Variables of the script or of the environment may have put secrets into the words.
    read.calls.iter().for_each(|call| secret::remember_words(&call.words));
    if let Some(line) = env.line {
        let mut lines: Vec<String> = read.calls.iter().map(|call| call.line.to_string()).collect();
        lines.dedup();
        read.calls.retain(|call| call.line == line);
        if read.calls.is_empty() {
            let message = format!("no program starts on this line; programs start on {}", lines.join(", "));
            return Err(ShellError { line, message });
        }
    }
    Ok(read)
}

/// Evaluates a script once. With `is_elsewhere`, a test for a missing file is unknown.
fn evaluate(script: &str, env: &ShellEnv, is_elsewhere: bool) -> Result<ScriptCalls, ShellError> {
    let mut machine = Machine::new(env, is_elsewhere);
    let flow = machine.script(script)?;
    let ended = (flow == Flow::Exit).then_some(machine.line);
    Ok(ScriptCalls { calls: machine.calls, unknowns: machine.unknowns, ended })
}
