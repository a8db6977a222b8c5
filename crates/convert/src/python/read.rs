//! Parses and evaluates a whole script.

use super::machine::{Machine, ScriptRead};
use burnish_hydra::Problem;
use rustpython_ruff_python_ast::Mod;
use rustpython_ruff_python_parser::{Mode, ParseOptions, parse};

/// The stack size of the evaluating thread: parser and evaluator recurse with every bracket and block.
const STACK: usize = 256 << 20;

/// A script to read.
#[derive(Clone, Copy)]
pub(crate) struct PyScript<'a> {
    pub name: &'a str,
    pub text: &'a str,
    /// Words of the command after the name of the script.
    pub words: &'a [String],
}

/// Evaluates a script and passes the recorded calls to `with`. Lines of a notebook such as `!pip install trl` are skipped.
///
/// # Errors
/// If the text is not Python, with the line.
pub(crate) fn read<T: Send>(script: PyScript, with: impl FnOnce(ScriptRead) -> Result<T, Problem> + Send) -> Result<T, Problem> {
    let evaluate = || {
        let parsed = parse(script.text, ParseOptions::from(Mode::Ipython)).map_err(|error| {
            let line = line_of(script.text, error.location.start().to_usize());
            Problem::new("", format!("{}:{line}: this is not Python: {}", script.name, error.error))
        })?;
        let Mod::Module(module) = parsed.syntax() else { return with(ScriptRead::default()) };
        let mut machine = Machine::new(script);
        machine.module(&module.body);
        with(machine.read)
    };
    let failed = || Problem::new("", format!("{}: the script cannot be evaluated", script.name));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluate);
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?
    })
}

/// Returns the line of a position in a text, from 1.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}
