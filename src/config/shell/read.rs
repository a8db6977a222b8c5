//! A script as a whole.

use super::machine::Machine;
use super::state::Flow;
use super::surroundings::Surroundings;
use super::text::{Call, Hole, ShellError};

/// The stack of the thread that reads a script: parser and evaluator go down it with every bracket and block.
const STACK: usize = 256 << 20;

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
/// If it is no shell script, or beyond the limits of steps, size and depth, or if no program is started on the line that is meant.
pub fn read(script: &str, around: &Surroundings) -> Result<Read, ShellError> {
    let evaluate = || {
        let mut machine = Machine::new(around);
        let flow = machine.script(script)?;
        let ended = (flow == Flow::Exit).then_some(machine.line);
        let mut calls = machine.calls;
        if let Some(line) = around.line {
            let mut lines: Vec<String> = calls.iter().map(|call| call.line.to_string()).collect();
            lines.dedup();
            calls.retain(|call| call.line == line);
            if calls.is_empty() {
                let message = format!("no program is started on this line; some are on {}", lines.join(", "));
                return Err(ShellError { line, message });
            }
        }
        Ok(Read { calls, holes: machine.holes, ended })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluate);
        let failed = || ShellError { line: 1, message: "the script cannot be read".into() };
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?
    })
}
