//! The argument `reward_funcs`: functions of the script, of its modules, and of TRL, and reward models.

use super::model::{place, plain_name};
use super::reading::{Reading, describe};
use super::trainers;
use crate::peers::ProgramReward;
use crate::python::{LibraryCall, PyValue};

/// Reads the rewards of a trainer.
pub(super) fn read(reading: &mut Reading, value: &PyValue) {
    if let PyValue::Option(_) = value {
        return;
    }
    let items = value.items().unwrap_or_else(|| vec![value.clone()]);
    let rewards = items.iter().filter_map(|item| reward(reading, item)).collect::<Vec<_>>();
    let file = reading.program.name.clone();
    let is_here = rewards.iter().any(|reward| matches!(reward, ProgramReward::Function { file: known, .. } if *known == file));
    let trainer = reading.script.calls.iter().find(|call| trainers::find(call).is_some());
    let trains = trainer.map(|call| call.line).filter(|line| reading.script.at_import.contains(line));
    if let Some(line) = trains.filter(|_| is_here) {
        let at = reading.program.at(line);
        let note = format!(
            "{file}: only imports, functions, classes and constants are loaded for the reward; the training ({at}) is not run"
        );
        reading.program.notes.push(note);
    }
    reading.program.rewards = Some(rewards);
}

fn reward(reading: &mut Reading, value: &PyValue) -> Option<ProgramReward> {
    let name = reading.program.name.clone();
    match value {
        PyValue::Function(function) => {
            let function_name = function.definition.name.to_string();
            if function.around.is_some() {
                let reason = "another function makes it: move it to the top of a file";
                reading.refuse(function.line, &format!("reward {function_name}"), reason);
            }
            Some(ProgramReward::Function { file: name, name: function_name })
        }
        PyValue::Text(model) => Some(ProgramReward::Model(model.to_string())),
        PyValue::Path(path) => of_path(reading, path),
        PyValue::Call(call) => of_call(reading, call),
        PyValue::Item(_) => plain_name(value).map(ProgramReward::Model),
        PyValue::Option(_) => None,
        other => {
            let (line, text) = place(other);
            reading.refuse(line, &format!("reward {text}"), "a reward must be a function at the top of a file, or a model");
            None
        }
    }
}

/// Returns an imported function.
fn of_path(reading: &mut Reading, path: &str) -> Option<ProgramReward> {
    let (module, function) = path.rsplit_once('.')?;
    if module == "trl" || module.starts_with("trl.") {
        return Some(ProgramReward::Library(function.to_string(), vec![]));
    }
    let folder = reading.program.name.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    Some(ProgramReward::Function { file: format!("{folder}{}.py", module.replace('.', "/")), name: function.to_string() })
}

fn of_call(reading: &mut Reading, call: &LibraryCall) -> Option<ProgramReward> {
    match call.name() {
        "from_pretrained" => plain_name(call.arguments.first()?).map(ProgramReward::Model),
        "partial" => {
            let inner = reward(reading, call.arguments.first()?);
            let arguments = call.keywords.iter().map(|(name, value)| {
                let value = value.setting().map_or_else(|value| describe(&value), |value| burnish_hydra::inline(&value));
                format!("{name}={value}")
            });
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            let reason = "write these arguments as defaults into the function: partial is not read";
            reading.refuse(call.line, &format!("partial(…, {arguments})"), reason);
            inner
        }
        name if call.path.starts_with("trl.") => {
            let value = |(name, value): &(String, PyValue)| Some((name.clone(), value.setting().ok()?));
            let positional = ["max_completion_len", "soft_punish_cache"].iter().zip(&call.arguments);
            let mut arguments: Vec<_> =
                positional.filter_map(|(name, value)| Some(((*name).to_string(), value.setting().ok()?))).collect();
            arguments.extend(call.keywords.iter().filter_map(value));
            Some(ProgramReward::Library(name.to_string(), arguments))
        }
        name => {
            let reason = "a reward must be a function at the top of a file, or a model";
            reading.refuse(call.line, &format!("reward {name}(…)"), reason);
            None
        }
    }
}
