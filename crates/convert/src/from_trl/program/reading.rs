//! A program under construction, and the description of values in messages.

use crate::peers::{ReadProgram, RefusedOption};
use crate::python::{NESTED, PARTS, PyValue, ScriptRead};

/// The program under construction, with what the script does.
pub(super) struct Reading<'s, 'a> {
    pub(super) script: &'s ScriptRead<'a>,
    pub(super) program: ReadProgram,
}

impl Reading<'_, '_> {
    /// Records a part of the script that is not converted, with its line; 0 without a line.
    pub(super) fn refuse(&mut self, line: usize, option: &str, reason: impl Into<String>) {
        let at = if line == 0 { String::new() } else { format!(" ({})", self.program.at(line)) };
        self.program.refused.push(RefusedOption { option: format!("{option}{at}"), reason: reason.into() });
    }
}

/// Returns a description of a value that is not a literal.
pub(super) fn describe(value: &PyValue) -> String {
    match value {
        PyValue::Unknown(unknown) => unknown.text.clone(),
        PyValue::Call(call) => format!("{}(…)", call.path),
        PyValue::Function(function) => function.definition.name.to_string(),
        PyValue::Class(class) => class.definition.name.to_string(),
        PyValue::Path(path) => path.to_string(),
        PyValue::Attribute(one) => format!("{}.{}", describe(&one.0), one.1),
        PyValue::Item(one) => format!("{}[…]", describe(&one.0)),
        PyValue::Option(name) => format!("--{name}"),
        PyValue::List(_) | PyValue::Tuple(_) | PyValue::Dict(_) => {
            format!("a value with more than {PARTS} parts, or nested more than {NESTED} deep")
        }
        _ => "an object".into(),
    }
}
