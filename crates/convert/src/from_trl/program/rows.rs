//! The data sets of a trainer.

use super::model::place;
use super::reading::{Reading, describe};
use crate::peers::ProgramRows;
use crate::python::{LibraryCall, PyValue};
use burnish_hydra::Value;

/// Methods that do not change the rows.
const SAME: &[&str] = &[
    "with_format",
    "set_format",
    "remove_columns",
    "select_columns",
    "flatten_indices",
    "cast",
    "cast_column",
    "to_iterable_dataset",
    "with_transform_none",
    "rename_split",
];

/// Builders of `load_dataset` whose files are read here.
const FORMATS: &[&str] = &["json", "parquet"];

/// Reads the argument `train_dataset` or `eval_dataset`.
pub(super) fn read(reading: &mut Reading, value: &PyValue, is_training: bool) {
    let mut changes = vec![];
    let default = if is_training { "train" } else { "test" };
    let rows = rows(reading, value, default, &mut changes);
    let rows = match (rows, changes.is_empty()) {
        (None, _) => return,
        (Some(rows), true) => rows,
        (Some(rows), false) => {
            let named = changes.join(", ");
            let set = shown(&rows);
            reading.refuse(
                0,
                &format!("{set}, changed by {named}"),
                "the script changes the rows: write the changed rows to a file",
            );
            ProgramRows::Unknown(format!("{set}, changed by {named}"))
        }
    };
    if is_training {
        reading.program.train = Some(rows);
    } else {
        reading.program.eval = Some(rows);
    }
}

/// Returns a description of rows.
fn shown(rows: &ProgramRows) -> String {
    match rows {
        ProgramRows::Split { set, split } => format!("split {split} of {set}"),
        ProgramRows::Files(files) => files.join(", "),
        ProgramRows::Unknown(text) => text.clone(),
        ProgramRows::OfOptions => "the rows of the options".into(),
    }
}

/// Returns the rows of a value, and records what the script changes in them; `None` without rows.
fn rows(reading: &mut Reading, value: &PyValue, split: &str, changes: &mut Vec<String>) -> Option<ProgramRows> {
    match value {
        PyValue::None => None,
        PyValue::Item(one) => {
            let named = match &one.1 {
                PyValue::Text(name) => name.to_string(),
                PyValue::Int(index) => return part(reading, &one.0, *index, split, changes),
                _ => split.to_string(),
            };
            rows(reading, &one.0, &named, changes)
        }
        PyValue::Call(call) => of_call(reading, call, split, changes),
        other => {
            let (line, text) = place(other);
            let at = format!("`{text}` ({})", reading.program.at(line));
            reading.refuse(line, &text, "these rows are known only when the script runs: write them to a file");
            Some(ProgramRows::Unknown(format!("rows of {at}")))
        }
    }
}

/// Returns one result of `load_dataset(…, split=["train", "test"])`.
fn part(reading: &mut Reading, value: &PyValue, index: i64, split: &str, changes: &mut Vec<String>) -> Option<ProgramRows> {
    let splits = value.as_call().and_then(|call| call.argument("split", usize::MAX)?.items());
    let named = splits.and_then(|splits| splits.get(usize::try_from(index).ok()?)?.as_text().map(str::to_string));
    rows(reading, value, &named.unwrap_or_else(|| split.to_string()), changes)
}

fn of_call(reading: &mut Reading, call: &LibraryCall, split: &str, changes: &mut Vec<String>) -> Option<ProgramRows> {
    let at = reading.program.at(call.line);
    if let Some(object) = &call.receiver {
        let found = rows(reading, object, if call.name() == "train_test_split" { "train" } else { split }, changes)?;
        match call.name() {
            name if SAME.contains(&name) => {}
            "shuffle" => reading.program.notes.push(format!("shuffle ({at}): a run shuffles the rows itself")),
            name => changes.push(format!(".{name}{} ({at})", arguments(call))),
        }
        return Some(found);
    }
    match call.name() {
        "load_dataset" => Some(loaded(reading, call, split)),
        "get_dataset" => Some(ProgramRows::OfOptions),
        "concatenate_datasets" => {
            let parts = call.argument("dsets", 0).and_then(PyValue::items)?;
            let parts: Vec<ProgramRows> = parts.iter().filter_map(|part| rows(reading, part, split, changes)).collect();
            let files: Option<Vec<Vec<String>>> =
                parts.iter().map(|part| if let ProgramRows::Files(files) = part { Some(files.clone()) } else { None }).collect();
            Some(match files {
                Some(files) => ProgramRows::Files(files.concat()),
                None => {
                    let all = parts.iter().map(shown).collect::<Vec<_>>().join(", ");
                    reading.refuse(call.line, "concatenate_datasets", format!("list the files of {all}"));
                    ProgramRows::Unknown(all)
                }
            })
        }
        "from_json" | "from_parquet" if call.path.contains("Dataset") => {
            let files = call.argument("path_or_paths", 0).and_then(|value| files(value, split));
            Some(files.map_or_else(|| ProgramRows::Unknown(format!("rows of {at}")), ProgramRows::Files))
        }
        "deepcopy" | "copy" => rows(reading, call.arguments.first()?, split, changes),
        name => {
            reading.refuse(call.line, &format!("{}{}", call.path, arguments(call)), "write these rows to a file");
            Some(ProgramRows::Unknown(format!("rows of {name} ({at})")))
        }
    }
}

/// Returns the literal arguments of a call, for a message.
fn arguments(call: &LibraryCall) -> String {
    let shown = |value: &PyValue| {
        value.setting().map_or_else(
            |value| describe(&value),
            |value| match &value {
                Value::List(items) if items.len() > 8 => format!("[… {} items]", items.len()),
                value => burnish_hydra::inline(value),
            },
        )
    };
    let named = call.keywords.iter().map(|(name, value)| format!("{name}={}", shown(value)));
    let all = call.arguments.iter().map(shown).chain(named).collect::<Vec<_>>().join(", ");
    format!("({})", burnish_util::excerpt::beginning(&all))
}

fn loaded(reading: &mut Reading, call: &LibraryCall, split: &str) -> ProgramRows {
    let at = reading.program.at(call.line);
    let path = call.argument("path", 0);
    let split = match call.argument("split", usize::MAX) {
        Some(PyValue::Text(split)) => split.to_string(),
        _ => split.to_string(),
    };
    let (path, data_files) = match path {
        Some(PyValue::Option(_)) => return ProgramRows::OfOptions,
        Some(PyValue::Text(path)) => (path.to_string(), call.argument("data_files", 3)),
        other => {
            let text = other.map_or_else(String::new, describe);
            reading.refuse(call.line, &format!("load_dataset({text})"), "the data set is known only when the script runs");
            return ProgramRows::Unknown(format!("rows of load_dataset ({at})"));
        }
    };
    if let Some(value) = data_files.filter(|value| !matches!(value, PyValue::None)) {
        let found = files(value, &split).filter(|_| FORMATS.contains(&path.as_str()) && !split.contains('['));
        return found.map_or_else(
            || {
                let value = value.setting().map_or_else(|value| describe(&value), |value| burnish_hydra::inline(&value));
                reading.refuse(call.line, "data_files", format!("{path}, split {split}: name the files of {value} yourself"));
                ProgramRows::Unknown(format!("split {split} of {value}"))
            },
            ProgramRows::Files,
        );
    }
    if let Some(folder) = call.argument("data_dir", 2).and_then(PyValue::as_text) {
        reading.refuse(call.line, "data_dir", "name the files of the folder yourself");
        return ProgramRows::Unknown(format!("split {split} of {path}, folder {folder}"));
    }
    let part = call.argument("name", 1).and_then(PyValue::as_text).map(|part| format!("/{part}")).unwrap_or_default();
    if split.contains('[') {
        reading.refuse(call.line, &format!("split {split}"), "a part of a split is not supported: write the rows to a file");
    }
    ProgramRows::Split { set: format!("{path}{part}"), split }
}

/// Returns the files of a split: of a mapping from splits to files, or of a list or a name, which has the split `train` only.
fn files(value: &PyValue, split: &str) -> Option<Vec<String>> {
    let bare = split.split('[').next().unwrap_or(split);
    let names = |value: &PyValue| match value {
        PyValue::Text(file) => Some(vec![file.to_string()]),
        value => value.items()?.iter().map(|file| Some(file.as_text()?.to_string())).collect(),
    };
    match value {
        PyValue::Dict(entries) => {
            let entries = entries.borrow();
            names(&entries.iter().find(|(name, _)| name.as_text() == Some(bare))?.1)
        }
        value if bare == "train" => names(value),
        _ => None,
    }
}
