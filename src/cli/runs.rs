//! `trainer runs`: lists the runs below a folder, or shows everything about one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::json;

use super::error::CliError;
use super::print::{print, print_data};
use burnish_report::folder::{find, resolve};
use burnish_report::record::RecordedRun;
use burnish_report::series::{Series, read_end};
use burnish_report::show::show;
use burnish_util::json_number;
use burnish_util::number::short;
use burnish_util::time::{human, unix_time};

#[derive(Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs and their state, the newest first
    Ls(LsArgs),
    /// Print all details of a run
    Show(ShowArgs),
}

#[derive(Args)]
pub(crate) struct LsArgs {
    /// Folders to search [default: checkpoints if it exists, else .]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Print a JSON object per run
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
}

pub(super) fn run(command: RunsCommand) -> Result<(), CliError> {
    match command {
        RunsCommand::Ls(args) => ls(&args),
        RunsCommand::Show(args) => print(&show(&resolve(&args.run).map_err(CliError::setup)?)),
    }
}

fn ls(args: &LsArgs) -> Result<(), CliError> {
    if let Some(missing) = args.folders.iter().find(|folder| !folder.is_dir()) {
        return Err(CliError::Setup(format!("the folder {} does not exist", missing.display())));
    }
    let folders = match &args.folders[..] {
        [] => vec![PathBuf::from(if Path::new("checkpoints").is_dir() { "checkpoints" } else { "." })],
        given => given.to_vec(),
    };
    let mut runs: Vec<Row> = find(&folders).into_iter().map(|dir| Row::read(&dir)).collect();
    runs.sort_by(|a, b| b.began().total_cmp(&a.began()));
    if runs.is_empty() {
        let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        tracing::warn!("no runs below {}; `trainer runs ls FOLDER` looks elsewhere", names.join(", "));
        return Ok(());
    }
    match args.json {
        true => print_data(&runs.iter().map(|run| format!("{}\n", run.json())).collect::<String>()),
        false => print(&table(&runs)),
    }
}

/// The metrics that can represent the reward, the most informative first: the score, the reward that PPO learns from, and the
/// loss of supervised runs.
const REWARDS: &[&str] = &["critic/score/mean", "critic/rewards/mean", "train/loss"];

struct Row {
    record: RecordedRun,
    /// The metrics of the last steps.
    series: Series,
}

impl Row {
    fn read(dir: &Path) -> Self {
        let record = RecordedRun::read(dir);
        let mut series = Series::default();
        let read = read_end(&record.metrics, &mut series).err().map(|error| format!("{error:#}"));
        record.problems.iter().chain(&read).for_each(|problem| tracing::warn!("{problem}"));
        Self { record, series }
    }

    /// The start of the run in Unix seconds, or the best known estimate of it.
    fn began(&self) -> f64 {
        self.record.started().or(self.record.touched).unwrap_or(0.0)
    }

    fn reward(&self) -> Option<(&'static str, f64)> {
        REWARDS.iter().find_map(|name| Some((*name, self.series.last(name)?.1)))
    }

    fn json(&self) -> serde_json::Value {
        let mut json = self.record.head(&self.series);
        json["reward"] =
            json!(self.reward().map(|(metric, value)| json!({"metric": metric, "value": json_number::to_value(value)})));
        json["duration_s"] = json!(self.record.worked());
        json
    }

    fn cells(&self) -> [String; 8] {
        let Self { record, series } = self;
        let unknown = || "-".to_owned();
        let step = record.step(series).map_or_else(unknown, |step| step.to_string());
        let best = record.info.as_ref().and_then(|info| info.best.as_ref());
        let duration = |seconds: f64| human(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        [
            record.name(),
            record.describe(),
            record.total_steps().map_or_else(|| step.clone(), |total| format!("{step}/{total}")),
            self.reward().map_or_else(unknown, |(name, value)| match name {
                "train/loss" => format!("loss {}", short(value)),
                _ => short(value),
            }),
            best.map_or_else(unknown, |best| format!("{} at {}", short(best.value), best.step)),
            record.started().map_or_else(unknown, |started| format!("{} ago", duration(unix_time() - started))),
            record.worked().map_or_else(unknown, duration),
            record.dir.display().to_string(),
        ]
    }
}

fn table(runs: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(["RUN", "STATE", "STEP", "REWARD", "BEST VALIDATION", "STARTED", "TOOK", "FOLDER"]);
    table.add_rows(runs.iter().map(Row::cells));
    for column in [2, 3, 5, 6] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
