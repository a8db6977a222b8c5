//! `trainer runs diff`: the settings in which two runs differ, and their results.

use std::path::PathBuf;

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::row::{RunRow, names};
use burnish_report::compare::{SettingDifference, differences, shown};
use burnish_report::disk::{bytes_of, size};
use burnish_report::folder::resolve;
use burnish_report::headline::headline;
use burnish_util::excerpt::{cell, first_items};
use burnish_util::json_number;
use burnish_util::number::short;
use burnish_util::terminal;

#[derive(Args)]
pub(crate) struct RunsDiffArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    a: PathBuf,
    /// The run to compare with
    #[arg(value_name = "RUN_DIR")]
    b: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) fn run(args: &RunsDiffArgs) -> Result<(), CliError> {
    let [a, b] = [&args.a, &args.b].map(|path| resolve(path).map(|dir| RunRow::read(&dir)).map_err(CliError::setup));
    let runs = [a?, b?];
    let (_, folders) = names(&runs.each_ref());
    let settings = differences(&runs.each_ref().map(|run| &run.record));
    if args.json.json {
        return print_rows(objects(&runs, &settings));
    }
    let mut lines: Vec<[String; 3]> = settings
        .into_iter()
        .map(|(key, values)| {
            let value = |index: usize| values[index].as_ref().map_or_else(|| "not set".to_owned(), shown);
            [key, value(0), value(1)]
        })
        .collect();
    if lines.is_empty() {
        lines.push(["settings".to_owned(), "the same".to_owned(), "the same".to_owned()]);
    }
    lines = first_items(lines, |left| [format!("… and {left} more"), String::new(), String::new()]);
    let results = lines.len();
    let mut add = |name: &str, of: &dyn Fn(&RunRow) -> String| lines.push([name.to_owned(), of(&runs[0]), of(&runs[1])]);
    add("state", &|run| run.record.describe());
    add("step", &RunRow::step);
    add("score", &RunRow::score);
    add("took", &RunRow::took);
    add("size", &|run| size(bytes_of(&run.record.dir)));
    for name in headline(&runs.each_ref().map(|run| &run.series)) {
        let last = |run: &RunRow| run.series.last(&name).map_or_else(super::row::unknown, |(_, value)| short(value));
        lines.push([name.clone(), last(&runs[0]), last(&runs[1])]);
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(terminal::columns());
    table.set_header(["".to_owned(), folders[0].clone(), folders[1].clone()]);
    for (index, line) in lines.into_iter().enumerate() {
        if index == results {
            table.add_row(["", "", ""]);
        }
        table.add_row(line.map(|text| cell(&text)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    if let Some(keys) = table.column_mut(0) {
        keys.set_constraint(ColumnConstraint::ContentWidth);
    }
    print(&table.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>())
}

/// Returns a row for each setting that differs, for the state and the step, and for each metric. A value that a run lacks is null.
fn objects(runs: &[RunRow; 2], settings: &[SettingDifference]) -> Vec<Value> {
    let row = |of: &str, key: &str, [a, b]: [Value; 2]| json!({ "of": of, "key": key, "a": a, "b": b });
    let heads = runs.each_ref().map(RunRow::object);
    let settings = settings.iter().map(|(key, values)| row("setting", key, [0, 1].map(|index| json!(values[index]))));
    let results = ["state", "step", "best", "duration_s", "bytes"];
    let results = results.iter().map(|key| row("result", key, heads.each_ref().map(|head| head[key].clone())));
    let names = headline(&runs.each_ref().map(|run| &run.series));
    let last = |run: &RunRow, name: &str| run.series.last(name).map_or(Value::Null, |(_, value)| json_number::to_value(value));
    let metrics = names.iter().map(|name| row("metric", name, runs.each_ref().map(|run| last(run, name))));
    settings.chain(results).chain(metrics).collect()
}
