//! `trainer runs ls`: the runs below folders, as a table that fits the terminal.

use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use super::row::{RunRow, names};
use burnish_report::compare::{differing, shown};
use burnish_report::disk::{bytes_of, size};
use burnish_report::folder::find;
use burnish_report::sweep::{Sweep, folder_of};
use burnish_util::excerpt::cell;
use burnish_util::terminal;

#[derive(Args)]
pub(crate) struct LsArgs {
    /// Folders to search [default: checkpoints if it exists, else .]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Only runs of this project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only runs with this text in their folder, state, model or settings (as key=value)
    #[arg(long, value_name = "TEXT")]
    with: Vec<String>,
    #[command(flatten)]
    json: JsonArg,
}

pub(super) fn run(args: &LsArgs) -> Result<(), CliError> {
    if let Some(missing) = args.folders.iter().find(|folder| !folder.is_dir()) {
        return Err(CliError::Setup(format!("the folder {} does not exist; --with TEXT selects runs", missing.display())));
    }
    let folders = match &args.folders[..] {
        [] => vec![PathBuf::from(if Path::new("checkpoints").is_dir() { "checkpoints" } else { "." })],
        given => given.to_vec(),
    };
    let mut runs: Vec<RunRow> = find(&folders).into_iter().map(|dir| RunRow::read(&dir)).collect();
    let found = runs.len();
    runs.retain(|run| is_selected(args, run));
    runs.sort_by(|a, b| b.began().total_cmp(&a.began()));
    if runs.is_empty() {
        let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        match found {
            0 => tracing::warn!("no runs below {}; `trainer runs ls FOLDER` looks elsewhere", names.join(", ")),
            _ => tracing::warn!("none of the {found} runs below {} is selected", names.join(", ")),
        }
        return Ok(());
    }
    match args.json.json {
        true => print_rows(runs.iter().map(RunRow::object)),
        false => print(&format!("{}{}", table(&runs), sweeps(&runs))),
    }
}

fn is_selected(args: &LsArgs, run: &RunRow) -> bool {
    let info = run.record.info.as_ref();
    let settings = || info.into_iter().flat_map(|info| &info.config).map(|set| format!("{}={}", set.key, shown(&set.value)));
    let texts = |text: &str| {
        let texts = [run.record.dir.display().to_string(), run.record.describe()];
        let model = info.is_some_and(|info| info.model.contains(text));
        model || texts.iter().any(|known| known.contains(text)) || settings().any(|setting| setting.contains(text))
    };
    let project = args.project.as_ref().is_none_or(|project| info.is_some_and(|info| info.project == *project));
    project && args.with.iter().all(|text| texts(text))
}

/// Returns the table of each sweep that has one of these runs.
fn sweeps(runs: &[RunRow]) -> String {
    let folders = Sweep::folders(runs.iter().map(|run| run.record.dir.as_path()));
    let text = |folder: &PathBuf| match Sweep::read(folder) {
        Ok(sweep) => format!("\n{}", sweep.text()),
        Err(error) => format!("\n{error:#}\n"),
    };
    folders.iter().map(text).collect()
}

fn table(runs: &[RunRow]) -> String {
    let records: Vec<_> = runs.iter().map(|run| &run.record).collect();
    let (settings, bytes) = (differing(&records), records.iter().map(|record| bytes_of(&record.dir)));
    let bytes: Vec<u64> = bytes.collect();
    let has_settings = settings.iter().any(|text| !text.is_empty());
    let (above, names) = names(&runs.iter().collect::<Vec<_>>());
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(terminal::columns());
    let shown = |mut cells: Vec<String>| {
        cells.truncate(if has_settings { 8 } else { 7 });
        cells.iter().map(|text| cell(text)).collect::<Vec<_>>()
    };
    table.set_header(shown(["RUN", "STATE", "STEP", "SCORE", "AGE", "TOOK", "SIZE", "SETTINGS"].map(str::to_owned).to_vec()));
    for (((run, name), settings), bytes) in runs.iter().zip(names).zip(settings).zip(&bytes) {
        let experiment = run.record.name();
        let is_named = run.record.dir.file_name().is_some_and(|folder| {
            let folder = folder.to_string_lossy();
            // The experiment of a sweep's job is that of the sweep with the name of the folder behind it.
            experiment == folder || experiment.ends_with(&format!("_{folder}")) && folder_of(&run.record.dir).is_some()
        });
        table.add_row(shown(vec![
            if is_named { name } else { format!("{name} ({experiment})") },
            run.record.describe(),
            run.step(),
            run.score(),
            run.age(),
            run.took(),
            size(*bytes),
            settings,
        ]));
    }
    for column in [2, 4, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let lines: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let count = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    let place = above.map_or(String::new(), |above| format!(" in {}", above.display()));
    format!("{lines}{count}{place}, {}\n", size(bytes.iter().sum()))
}
