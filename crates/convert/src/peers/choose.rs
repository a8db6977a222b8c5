//! The chosen command of a text, with the program that it starts.

use super::argparse::typed;
use super::call::TrainerCall;
use super::converted::RefusedOption;
use super::names::find_exact;
use super::options::PeerOptions;
use super::peer::Peer;
use super::program::{ProgramText, ReadProgram};
use burnish_hydra::{Problem, Value, inline};
use indexmap::IndexMap;

/// A text with commands.
#[derive(Clone, Copy)]
pub(super) struct CommandText<'a> {
    pub name: &'a str,
    pub stage: Option<&'a str>,
    /// Reads a file.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}

/// A command with the program that it starts.
pub(super) struct ChosenCall<'a> {
    pub words: &'a [String],
    pub call: TrainerCall,
    pub program: Option<ReadProgram>,
}

/// Chooses the first command whose stage is known from its name or its program, otherwise the first command.
///
/// # Errors
/// If a program is not a program of its language.
pub(super) fn choose<'a>(
    peer: &Peer,
    source: CommandText,
    found: &mut Vec<(usize, &'a [String], TrainerCall)>,
) -> Result<Option<ChosenCall<'a>>, Problem> {
    let (mut chosen, mut idle) = (None, None);
    for (index, (_, words, call)) in found.iter().enumerate() {
        let program = match read(peer, source, words, call)? {
            FoundProgram::Trains(program) => Some(*program),
            FoundProgram::Idle(name) => {
                idle = idle.or(Some(name));
                None
            }
            FoundProgram::Absent => None,
        };
        if program.is_some() || peer.trainer(&call.stage).is_some() {
            chosen = Some((index, program));
            break;
        }
    }
    if let (None, Some(name)) = (&chosen, idle) {
        let message = format!("{name}: the program has no trainer of {} that can be read", peer.name);
        return Err(Problem::new("", message).help(format!("write a command such as {}", peer.example)));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let (index, program) = chosen.unwrap_or((0, None));
    let (_, words, call) = found.remove(index);
    Ok(Some(ChosenCall { words, call, program }))
}

/// The program of a command.
enum FoundProgram {
    Trains(Box<ReadProgram>),
    /// A program without a trainer.
    Idle(String),
    /// A program that cannot be read here.
    Absent,
}

/// Reads the program of a command.
fn read(peer: &Peer, source: CommandText, words: &[String], call: &TrainerCall) -> Result<FoundProgram, Problem> {
    // An example script of the library is read too, if it exists here.
    let example = call.rest.checked_sub(1).and_then(|at| words.get(at)).filter(|word| word.ends_with(".py"));
    let example = example.filter(|word| word.contains("examples/"));
    let (Some(script), Some(read)) = (call.script.as_ref().or(example), peer.program) else { return Ok(FoundProgram::Absent) };
    let neighbour = source.name.rsplit_once('/').map(|(folder, _)| format!("{folder}/{script}"));
    let paths = [Some(script.clone()), neighbour.filter(|_| !script.starts_with('/'))];
    let text = paths.into_iter().flatten().find_map(|path| Some(((source.read)(&path).ok()?, path)));
    let Some((text, name)) = text else { return Ok(FoundProgram::Absent) };
    let words = words.get(call.rest..).unwrap_or_default();
    let program = read(&ProgramText { name: &name, text: &text, words, stage: source.stage })?;
    Ok(program.map_or(FoundProgram::Idle(name), |program| FoundProgram::Trains(Box::new(program))))
}

/// The options of a program that have a value, and those that do not.
#[derive(Default)]
pub(super) struct ProgramValues {
    pub defaults: IndexMap<&'static str, Value>,
    pub set_options: IndexMap<&'static str, Value>,
    /// Options without a known value, with the place and the expression.
    pub unknown: IndexMap<&'static str, String>,
    pub refused: Vec<RefusedOption>,
    pub notes: Vec<String>,
}

/// Reads the options of a program like the options of a command.
pub(super) fn values(program: &ReadProgram, options: &'static PeerOptions, trainer: &'static str) -> ProgramValues {
    let mut values = ProgramValues { refused: program.refused.clone(), notes: program.notes.clone(), ..ProgramValues::default() };
    for option in &program.options {
        let at = program.at(option.line);
        let shown = match &option.value {
            Ok(value) => inline(value),
            Err(text) => text.clone(),
        };
        let named = || format!("{} {shown} ({at})", option.name);
        let Some(row) = find_exact(options, trainer, &option.name) else {
            if option.is_default {
                values.notes.push(format!("{}: an option of {} itself", named(), program.at(0)));
                continue;
            }
            let reason = "this is not an option in any edition".to_string();
            values.refused.push(RefusedOption { option: named(), reason });
            continue;
        };
        let value = match &option.value {
            Ok(value) => typed(row, value.clone()).map_err(|expected| format!("it must be {expected}")),
            Err(text) => {
                values.unknown.insert(row.name, format!("`{text}` ({at}) is known only when the program runs"));
                Err("its value is known only when the program runs".to_string())
            }
        };
        match value {
            Ok(value) => {
                values.unknown.shift_remove(row.name);
                let map = if option.is_default { &mut values.defaults } else { &mut values.set_options };
                map.insert(row.name, value);
            }
            Err(reason) => values.refused.push(RefusedOption { option: named(), reason }),
        }
    }
    values
}
