//! The evaluation of a whole script.

use super::env::ShellEnv;
use super::launches::{self, ScriptCalls};
use super::machine::ShellMachine;
use super::state::ShellFlow;
use super::text::{ProgramCall, ShellError};
use burnish_util::contained::caught;
use burnish_util::secret;

/// The stack size of the evaluating thread: parser and evaluator recurse with every bracket and block.
const STACK: usize = 256 << 20;

/// Evaluates a script. `is_meant` returns true for the words of a program that the caller looks for.
///
/// A script may be written for another machine, and exit because a file is missing on this one. If no program that the caller
/// looks for is started, a second evaluation therefore treats tests for missing files as unknown.
///
/// # Errors
/// If the text is not a shell script, exceeds the limits of steps, size or depth, or starts no program on the requested line or
/// with the requested number.
pub fn read(script: &str, env: &ShellEnv, is_meant: &(dyn Fn(&[String]) -> bool + Sync)) -> Result<ScriptCalls, ShellError> {
    secret::remember_in(script);
    let is_meant = |call: &ProgramCall| env.line.is_none_or(|line| line == call.line) && is_meant(&call.words);
    let text = script.replace("\r\n", "\n");
    let read = || {
        let first = evaluate(&text, env, false, &is_meant)?;
        let again = || evaluate(&text, env, true, &is_meant).ok().filter(|read| read.calls.iter().any(is_meant));
        if first.calls.iter().any(is_meant) { Ok(first) } else { Ok(again().unwrap_or(first)) }
    };
    // The parser panics on some texts, such as a number of 30 digits in braces.
    let read = || caught(read);
    let mut read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        let failed = || ShellError { line: 1, message: "the script cannot be evaluated".into(), is_endless: false };
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?.map_err(|_| failed())?
    })?;
    // Variables of the script or of the environment may have put secrets into the words.
    read.calls.iter().for_each(|call| secret::remember_words(&call.words));
    if text.len() < script.len() {
        read.notes
            .insert(0, format!("{}: read without the carriage returns at the ends of its lines, as bash needs it", env.name));
    }
    if let Some(line) = env.line {
        let mut lines: Vec<String> = read.calls.iter().map(|call| call.line.to_string()).collect();
        lines.dedup();
        read.calls.retain(|call| call.line == line);
        if read.calls.is_empty() {
            let message = format!("no program starts on this line; programs start on {}", lines.join(", "));
            return Err(ShellError { line, message, is_endless: false });
        }
    }
    launches::choose(&mut read, env.launch, &is_meant)?;
    Ok(read)
}

/// Evaluates a script once. With `is_elsewhere`, a test for a missing file is unknown.
///
/// A script that exceeds the limits, as one that waits for a queue of work, ends there if a meant program has started before.
fn evaluate(
    script: &str,
    env: &ShellEnv,
    is_elsewhere: bool,
    is_meant: &dyn Fn(&ProgramCall) -> bool,
) -> Result<ScriptCalls, ShellError> {
    let mut machine = ShellMachine::new(env, is_elsewhere);
    let mut notes = vec![];
    let flow = match machine.script(script) {
        Err(error) if error.is_endless && machine.calls.iter().any(is_meant) => {
            notes.push(format!("{}:{}: {}; the launches before that are known", env.name, error.line, error.message));
            ShellFlow::Next
        }
        result => result?,
    };
    notes.extend(machine.endless.iter().map(|line| {
        format!(
            "{}:{line}: this loop ends only in a real run, which it may wait for: what follows is read as if it had ended",
            env.name
        )
    }));
    let ended = (flow == ShellFlow::Exit).then_some(machine.line);
    Ok(ScriptCalls { calls: machine.calls, unknowns: machine.unknowns, ended, further: vec![], notes })
}
