//! The launches of a script: rounds of a loop and further lines.

use super::text::{ProgramCall, ShellError, Unknown, replace_unknowns, short};
use std::collections::HashSet;

/// The limit of words that tell two launches apart.
const DIFFERENCES: usize = 3;

/// The limit of launches in a message.
const SHOWN: usize = 9;

/// The programs that a script would start, in order.
#[derive(Debug)]
pub struct ScriptCalls {
    pub calls: Vec<ProgramCall>,
    pub unknowns: Vec<Unknown>,
    /// Line of an `exit` that ends the script early.
    pub ended: Option<usize>,
    /// Launches after the first, which a caller does not convert.
    pub further: Vec<Launch>,
    /// Advice about the script as a whole.
    pub notes: Vec<String>,
}

/// A launch that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Number among the launches, from 1.
    pub number: usize,
    pub line: usize,
    /// Words that the first launch does not have.
    pub differs: Vec<String>,
}

/// Keeps the launch with this number, or lists the launches after the first.
///
/// # Errors
/// If the script has fewer launches.
pub(super) fn choose(
    read: &mut ScriptCalls,
    requested: Option<usize>,
    is_meant: &dyn Fn(&ProgramCall) -> bool,
) -> Result<(), ShellError> {
    // Rounds with the same words are one launch.
    let mut known = HashSet::new();
    let is_new = |index: &usize| is_meant(&read.calls[*index]) && known.insert(&read.calls[*index]);
    let candidates: Vec<usize> = (0..read.calls.len()).filter(is_new).collect();
    let Some(requested) = requested else {
        if let Some(first) = candidates.first().map(|index| &read.calls[*index]) {
            let others = candidates.iter().enumerate().skip(1);
            read.further = others.map(|(at, index)| launch(at + 1, &read.calls[*index], first)).collect();
        }
        return Ok(());
    };
    match requested.checked_sub(1).and_then(|at| candidates.get(at)) {
        Some(index) => {
            read.calls = vec![read.calls.swap_remove(*index)];
            Ok(())
        }
        None => {
            let message = format!("--launch {requested}: the number of launches is {}", candidates.len());
            Err(ShellError { line: 1, message, is_endless: false })
        }
    }
}

fn launch(number: usize, call: &ProgramCall, first: &ProgramCall) -> Launch {
    let others = call.words.iter().filter(|word| !first.words.contains(word));
    let differs = others.take(DIFFERENCES).map(|word| short(&replace_unknowns(word, &|_| "…".into()))).collect();
    Launch { number, line: call.line, differs }
}

/// Returns the message about launches that were not converted; `None` without one.
pub fn message(name: &str, further: &[Launch]) -> Option<String> {
    let one = |launch: &Launch| {
        let Launch { number, line, differs } = launch;
        let words = if differs.is_empty() { "the same words".into() } else { differs.join(" ") };
        format!("\n  --launch {number}: line {line}, {words}")
    };
    let lines: String = further.iter().take(SHOWN).map(one).collect();
    let rest = further.len().saturating_sub(SHOWN);
    let rest = if rest == 0 { String::new() } else { format!("\n  and {rest} more") };
    let count = further.len() + 1;
    (!further.is_empty())
        .then(|| format!("{name} launches {count} times, and this is the first; for another, write{lines}{rest}"))
}
