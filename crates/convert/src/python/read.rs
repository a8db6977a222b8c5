//! Parses and evaluates a whole script.

use super::depth::too_deep;
use super::machine::{PyMachine, ScriptRead};
use super::script::{PyScript, line_of};
use burnish_hydra::Problem;
use rustpython_ruff_python_ast::Mod;
use rustpython_ruff_python_parser::{Mode, ParseOptions, parse};

/// The stack size of the evaluating thread: parser and evaluator recurse with every bracket and block.
const STACK: usize = 256 << 20;

/// Evaluates a script and passes the recorded calls to `with`. Lines of a notebook such as `!pip install trl` are skipped.
///
/// # Errors
/// If the text is not Python, with the line.
pub(crate) fn read<T: Send>(script: PyScript, with: impl FnOnce(ScriptRead) -> Result<T, Problem> + Send) -> Result<T, Problem> {
    if let Some(line) = too_deep(script.text) {
        return Err(Problem::new("", format!("{}:{line}: the expressions nest too deeply", script.name)));
    }
    let evaluate = || {
        let parsed = parse(script.text, ParseOptions::from(Mode::Ipython)).map_err(|error| {
            let line = line_of(script.text, error.location.start().to_usize());
            Problem::new("", format!("{}:{line}: this is not Python: {}", script.name, error.error))
        })?;
        let Mod::Module(module) = parsed.syntax() else { return with(ScriptRead::default()) };
        let mut machine = PyMachine::new(script);
        machine.module(&module.body);
        with(machine.read)
    };
    let failed = || Problem::new("", format!("{}: the script cannot be evaluated", script.name));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluate);
        thread.map_err(|_| failed())?.join().map_err(|_| failed())?
    })
}
