//! Reads the first trainer of a script.

use super::reading::Reading;
use super::trainers::{self, TrainerClass, find};
use super::{configuration, model, trainer_arguments};
use crate::peers::{ProgramText, ReadProgram};
use crate::python::{self, EvaluationLimit, LibraryCall, PyScript, PyValue, ScriptRead};
use burnish_hydra::Problem;
use std::rc::Rc;

/// Reads the first trainer of a script, or the first one of a stage; `None` if the script has no trainer.
///
/// # Errors
/// If the text is not Python.
pub(in crate::from_trl) fn read(text: &ProgramText) -> Result<Option<ReadProgram>, Problem> {
    let script = PyScript { name: text.name, text: text.text, words: text.words };
    python::read(script, |read| match (training(text, &read), read.limits.first()) {
        (None, Some((limit, line))) => {
            Err(Problem::new("", format!("{}:{line}: {}, so that no trainer is found", text.name, limit.words())))
        }
        (program, _) => Ok(program),
    })
}

fn training(text: &ProgramText, script: &ScriptRead) -> Option<ReadProgram> {
    let all = || script.calls.iter().filter_map(|call| Some((call, find(call)?)));
    let chosen = all().find(|(_, class)| text.stage.is_none_or(|stage| stage == class.stage));
    // A trainer that is not supported is named only if there is no other.
    let supported = all().find(|(_, class)| class.is_supported() && text.stage.is_none());
    let (call, class) = supported.or(chosen).or_else(|| all().next())?;
    let words = text.words.iter().enumerate().filter(|(index, _)| !script.script_words.contains(index));
    let program = ReadProgram {
        name: text.name.to_string(),
        stage: class.stage.to_string(),
        words: words.map(|(_, word)| word.clone()).collect(),
        reads_options: script.reads_options && script.reads_words,
        script_options: script.script_options.clone(),
        options_file: script.parsed_file.clone(),
        ..ReadProgram::default()
    };
    let mut reading = Reading { script, program };
    if !reading.program.reads_options {
        let left = std::mem::take(&mut reading.program.words);
        if !left.is_empty() {
            reading.refuse(0, &left.join(" "), format!("{} does not read these words", text.name));
        }
    }
    for (name, value, line) in &script.parsed {
        configuration::option(&mut reading, name, value, *line, true);
    }
    trainer(&mut reading, call, class);
    for (other, class) in all().filter(|(other, _)| !Rc::ptr_eq(other, call)) {
        let way = if class.stage == reading.program.stage {
            "only the first trainer of a stage is converted".to_string()
        } else {
            format!("a recipe has one stage: --algo {} converts it", class.stage)
        };
        reading.refuse(other.line, class.class, way);
    }
    for (limit, line) in &script.limits {
        match limit {
            EvaluationLimit::Steps => reading.refuse(*line, "the rest of the script", limit.words()),
            _ => {
                let note = format!("{}: {}", reading.program.at(*line), limit.words());
                reading.program.notes.push(note);
            }
        }
    }
    for (name, default) in &script.environment {
        let note = format!("{name} of the environment is taken as {default}, its default in {}", reading.program.at(0));
        reading.program.notes.push(note);
    }
    Some(reading.program)
}

/// Reads the arguments of a trainer.
fn trainer(reading: &mut Reading, call: &Rc<LibraryCall>, class: &TrainerClass) {
    let is_foreign = !call.path.starts_with("trl.") && call.path.contains('.');
    if let Some(of_user) = call.class.as_ref().filter(|of_user| of_user.changes_methods()) {
        let name = of_user.definition.name.to_string();
        reading.refuse(of_user.line, &name, format!("its own methods are not read; the rest is converted as {}", class.class));
    } else if is_foreign && !call.path.starts_with("unsloth.") {
        reading.refuse(call.line, &call.path, format!("its code is not read; the rest is converted as {}", class.class));
    }
    for unread in &call.unread {
        reading.refuse(unread.line, &unread.text, format!("arguments of {} that cannot be read", class.class));
    }
    let positional = class.positional(call).into_iter().zip(&call.arguments);
    let named = call.keywords.iter().map(|(name, value)| (trainers::present_name(name), value));
    let mut arguments: Vec<(&str, &PyValue)> = positional.chain(named).collect();
    // The model is compared with the model of the tokenizer and of the reference.
    arguments.sort_by_key(|(name, _)| !matches!(*name, "model" | "args"));
    for (name, value) in arguments {
        trainer_arguments::read(reading, call, name, value);
    }
    model::changes(reading);
}
