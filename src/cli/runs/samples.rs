//! `trainer runs samples`: when each prompt of a run was seen, and the scores of its responses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::print;
use crate::trainer::sampling::samples::DISCARDED;
use burnish_report::folder::resolve;
use burnish_run::{RunInfo, SAMPLES};
use burnish_util::excerpt::beginning_of;
use burnish_util::foreign;
use burnish_util::json_number;
use burnish_util::number::short;
use burnish_util::printable::printable;
use burnish_util::terminal;

/// Prompts that a table has at most.
const MOST: usize = 20;
/// Largest number of bytes of a file of samples.
const LARGEST: u64 = 1 << 32;
/// Folder with all responses of each step.
const DUMP: &str = "trainer.rollout_data_dir";

#[derive(Args)]
pub(crate) struct RunsSamplesArgs {
    /// Folder of a run, a checkpoint or a file in it
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Only this prompt, each time it was seen: its row in the training files, or a part of its text
    #[arg(long, value_name = "ID", conflicts_with_all = ["worst", "flipped"])]
    prompt: Option<String>,
    /// The prompts with the lowest scores when they were last seen first
    #[arg(long, conflicts_with = "flipped")]
    worst: bool,
    /// Prompts whose mean score changed between the first and the last time, the largest change first
    #[arg(long)]
    flipped: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// A response in the record.
struct SeenResponse {
    step: u64,
    row: Option<u64>,
    prompt: String,
    score: Option<f64>,
    advantage: Option<f64>,
    is_cut: bool,
    /// Reason why dynamic sampling discarded it.
    discarded: Option<String>,
    /// Updates of the step that learned from it.
    updates: Vec<u64>,
}

/// A prompt with the responses of each step that saw it.
struct SeenPrompt {
    row: Option<u64>,
    text: String,
    steps: BTreeMap<u64, Vec<SeenResponse>>,
}

pub(super) fn run(args: &RunsSamplesArgs) -> Result<(), CliError> {
    let dir = resolve(&args.run).map_err(CliError::setup)?;
    let (responses, source) = read(&dir).map_err(CliError::setup)?;
    let prompts = selected(args, prompts(responses)).map_err(CliError::setup)?;
    if args.json.json {
        return print_rows(prompts.iter().flat_map(|prompt| prompt.steps.keys().map(|step| prompt.object(*step))));
    }
    let text = match args.prompt {
        Some(_) => prompts.iter().map(SeenPrompt::history).collect(),
        None => overview(&prompts),
    };
    print(&format!("{text}{source}\n"))
}

/// Reads the responses of training, and says where they come from: all of them in `trainer.rollout_data_dir`, or else those in
/// samples.jsonl.
fn read(dir: &Path) -> Result<(Vec<SeenResponse>, String)> {
    let info = RunInfo::read(dir).ok();
    let dump = info.as_ref().and_then(|info| {
        let setting = info.config.iter().find(|setting| setting.key == DUMP)?;
        Some(info.cwd.join(setting.value.as_str()?)).filter(|folder| folder.is_dir())
    });
    let Some(folder) = dump else {
        let responses = lines(&dir.join(SAMPLES))?;
        let source = format!("of the responses that trainer.log_completions kept; {DUMP} keeps all of a run");
        return Ok((responses, source));
    };
    let mut responses = Vec::new();
    for folder in [folder.clone(), folder.join(DISCARDED)].iter().filter(|folder| folder.is_dir()) {
        for entry in folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let is_step = path.file_stem().is_some_and(|stem| stem.to_string_lossy().parse::<u64>().is_ok());
            if is_step && path.extension().is_some_and(|extension| extension == "jsonl") {
                responses.extend(lines(&path)?);
            }
        }
    }
    Ok((responses, format!("of all responses, in {}", folder.display())))
}

fn lines(path: &Path) -> Result<Vec<SeenResponse>> {
    let text = foreign::read_text(path, LARGEST)?;
    Ok(text.lines().filter_map(|line| response(&serde_json::from_str(line).ok()?)).collect())
}

/// Reads a line of either file; `None` for a response of validation.
fn response(line: &Value) -> Option<SeenResponse> {
    if line.get("kind").is_some_and(|kind| kind != "train") {
        return None;
    }
    let number = |key: &str| line.get(key).and_then(json_number::from_value);
    Some(SeenResponse {
        step: line["step"].as_u64()?,
        row: line["row"].as_u64(),
        prompt: line.get("prompt").or_else(|| line.get("input"))?.as_str()?.to_owned(),
        // A response without a score has null.
        score: number("score").filter(|score| score.is_finite()),
        advantage: number("advantage"),
        is_cut: line["finish"] == "length",
        discarded: line["discarded"].as_str().map(str::to_owned),
        updates: line["updates"].as_array().iter().flat_map(|all| all.iter().filter_map(Value::as_u64)).collect(),
    })
}

/// Groups responses by their prompts, in the order of rows.
fn prompts(responses: Vec<SeenResponse>) -> Vec<SeenPrompt> {
    let mut found: BTreeMap<(Option<u64>, String), SeenPrompt> = BTreeMap::new();
    for response in responses {
        let key = (response.row, response.prompt.clone());
        let prompt = found.entry(key).or_insert_with(|| SeenPrompt {
            row: response.row,
            text: response.prompt.clone(),
            steps: BTreeMap::new(),
        });
        prompt.steps.entry(response.step).or_default().push(response);
    }
    found.into_values().collect()
}

fn selected(args: &RunsSamplesArgs, mut prompts: Vec<SeenPrompt>) -> Result<Vec<SeenPrompt>> {
    if let Some(id) = &args.prompt {
        let row = id.parse::<u64>().ok();
        prompts.retain(|prompt| if row.is_some() { prompt.row == row } else { prompt.text.contains(id.as_str()) });
        if prompts.is_empty() {
            return Err(anyhow!("--prompt {id}: the record has no such prompt; without --prompt, the command lists them"));
        }
    }
    let last = |prompt: &SeenPrompt| prompt.means().next_back().unwrap_or(f64::INFINITY);
    if args.worst {
        prompts.sort_by(|a, b| last(a).total_cmp(&last(b)));
    }
    if args.flipped {
        prompts.retain(|prompt| prompt.change() != 0.0);
        prompts.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    }
    Ok(prompts)
}

impl SeenPrompt {
    /// Returns the mean score of each step that has one.
    fn means(&self) -> impl DoubleEndedIterator<Item = f64> {
        self.steps.values().filter_map(|responses| mean(responses.iter().filter_map(|response| response.score)))
    }

    /// Returns the change of the mean score between the first and the last step.
    fn change(&self) -> f64 {
        self.means().next_back().zip(self.means().next()).map_or(0.0, |(last, first)| last - first)
    }

    fn name(&self) -> String {
        self.row.map_or_else(|| "-".to_owned(), |row| row.to_string())
    }

    /// Returns each step that saw the prompt, with the scores of its responses.
    fn history(&self) -> String {
        let rows = self.steps.iter().map(|(step, responses)| {
            let joined = |of: &dyn Fn(&SeenResponse) -> Option<f64>| {
                let texts = responses.iter().map(|response| of(response).map_or_else(|| "-".to_owned(), short));
                texts.collect::<Vec<_>>().join(" ")
            };
            let cut = responses.iter().filter(|response| response.is_cut).count();
            let cut = if cut > 0 { format!("{cut} cut by the limit") } else { String::new() };
            let note = note(responses).into_iter().chain([cut]).filter(|note| !note.is_empty());
            let note = note.collect::<Vec<_>>().join(", ");
            let updates: Vec<String> = updates(responses).iter().map(u64::to_string).collect();
            let [scores, advantages] = [joined(&|response| response.score), joined(&|response| response.advantage)];
            vec![step.to_string(), scores, advantages, updates.join(" "), note]
        });
        let heads = ["step", "scores", "advantages", "updates", ""];
        format!("row {}: {}\n{}\n", self.name(), printable(&self.text), table(&heads, rows))
    }

    fn object(&self, step: u64) -> Value {
        let responses = &self.steps[&step];
        let numbers = |of: &dyn Fn(&SeenResponse) -> Option<f64>| -> Vec<Value> {
            responses.iter().map(|response| json_number::to_value(of(response))).collect()
        };
        json!({
            "row": self.row,
            "prompt": self.text,
            "step": step,
            "scores": numbers(&|response| response.score),
            "advantages": numbers(&|response| response.advantage),
            "cut": responses.iter().filter(|response| response.is_cut).count(),
            "note": note(responses),
            "updates": updates(responses),
        })
    }
}

/// Returns the numbers of the updates of a step that learned from a response.
fn updates(responses: &[SeenResponse]) -> BTreeSet<u64> {
    responses.iter().flat_map(|response| response.updates.iter().copied()).collect()
}

/// Says why the responses of a step taught nothing, if they did not.
fn note(responses: &[SeenResponse]) -> Option<String> {
    if let Some(reason) = responses.iter().find_map(|response| response.discarded.as_ref()) {
        return Some(format!("discarded: {reason}"));
    }
    let all_zero = responses.iter().all(|response| response.advantage == Some(0.0));
    let scores: Vec<Option<f64>> = responses.iter().map(|response| response.score).collect();
    match (all_zero, responses.len() > 1 && scores.iter().all(|score| *score == scores[0])) {
        (true, true) => Some("no signal: all scores are the same".to_owned()),
        (true, false) => Some("no signal: every advantage is 0".to_owned()),
        _ => None,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn overview(prompts: &[SeenPrompt]) -> String {
    let rows = prompts.iter().take(MOST).map(|prompt| {
        let steps: Vec<String> = prompt.steps.keys().map(u64::to_string).collect();
        let means: Vec<String> = prompt.means().map(short).collect();
        vec![prompt.name(), steps.join(" "), means.join(" "), beginning_of(&printable(&prompt.text).replace('\n', "⏎"), 50)]
    });
    let more = prompts.len().saturating_sub(MOST);
    let more = if more > 0 { format!("and {more} more prompts: --json has all\n") } else { String::new() };
    format!("{}{more}{} prompts ", table(&["row", "steps", "mean scores", "prompt"], rows), prompts.len())
}

fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(terminal::columns());
    table.set_header(heads.iter().map(ToString::to_string).collect::<Vec<_>>());
    rows.for_each(|row| _ = table.add_row(row));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_files_become_the_history_of_prompts() {
        let lines = [
            json!({"step": 1, "kind": "train", "row": 7, "prompt": "2+2=", "score": 0.0, "advantage": 0.0, "finish": "length"}),
            json!({"step": 1, "kind": "train", "row": 7, "prompt": "2+2=", "score": 0.0, "advantage": 0.0, "finish": "stop"}),
            json!({"step": 3, "row": 7, "input": "2+2=", "score": 1.0, "advantage": 0.5, "updates": [2, 4]}),
            json!({"step": 5, "row": 7, "input": "2+2=", "score": 1.0, "discarded": "acc is 1 for all responses"}),
            json!({"step": 3, "input": "3+3=", "score": null}),
            json!({"step": 3, "kind": "val", "prompt": "9", "score": 1.0}),
        ];
        let found = prompts(lines.iter().filter_map(response).collect());
        assert_eq!(found.iter().map(|prompt| prompt.row).collect::<Vec<_>>(), [None, Some(7)]);
        assert_eq!((found[0].change(), found[1].change()), (0.0, 1.0));
        let first = found[1].object(1);
        assert_eq!((&first["cut"], &first["note"]), (&json!(1), &json!("no signal: all scores are the same")));
        assert_eq!(found[1].object(3)["updates"], json!([2, 4]));
        assert_eq!(found[1].object(5)["note"], json!("discarded: acc is 1 for all responses"));
        let history = found[1].history();
        assert!(["1 cut", "2 4", "discarded: acc is 1"].iter().all(|part| history.contains(part)), "{history}");
    }
}
