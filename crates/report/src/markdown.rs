//! A run in a few lines of Markdown, for a comment on a change: `trainer report --markdown`.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::headline::headline;
use super::record::RecordedRun;
use super::series::Series;
use super::tail::Tail;
use burnish_util::number::short;
use burnish_util::shell::command_line;
use burnish_util::time::human;

/// Returns the summary of the run in this folder: its state, what it trained, and each metric at its first and last step.
///
/// # Errors
/// If the metrics cannot be read.
pub fn markdown(dir: &Path) -> Result<String> {
    let record = RecordedRun::read(dir);
    let mut series = Series::default();
    Tail::new(record.metrics.clone()).read(&mut series)?;
    let mut text = format!("### {}: {}\n\n", cell(&record.name()), cell(&record.describe()));
    _ = writeln!(text, "{}\n", facts(&record, &series).join(", "));
    if let Some(error) = record.info.as_ref().and_then(|info| info.error.as_ref()) {
        _ = writeln!(text, "{}\n", fenced(error));
    }
    for alarm in record.alarms() {
        _ = writeln!(text, "- alarm at step {}: {}: {}", alarm.step, cell(&alarm.name), cell(&alarm.sentence));
    }
    if !record.alarms().is_empty() {
        text.push('\n');
    }
    let names = headline(&[&series]);
    if !names.is_empty() {
        text.push_str("| Metric | First | Last |\n|---|---|---|\n");
    }
    for name in names {
        let at = |found: Option<(u64, f64)>| {
            found.map_or_else(|| "-".to_owned(), |(step, value)| format!("{} (step {step})", short(value)))
        };
        _ = writeln!(text, "| `{}` | {} | {} |", cell(&name), at(series.first(&name)), at(series.last(&name)));
    }
    if let Some(info) = record.info.as_ref().filter(|info| !info.command.is_empty()) {
        _ = writeln!(text, "\n{}", fenced(&command_line(&info.command)));
    }
    Ok(text)
}

fn facts(record: &RecordedRun, series: &Series) -> Vec<String> {
    let step = record.step(series).unwrap_or(0);
    let steps = record.total_steps().map_or_else(|| format!("{step} steps"), |total| format!("{step} of {total} steps"));
    let took = record.worked().map(|seconds| human(Duration::try_from_secs_f64(seconds).unwrap_or_default()));
    let info = record.info.as_ref();
    let named =
        |name: &str, value: Option<&String>| value.filter(|text| !text.is_empty()).map(|text| format!("{name} {}", cell(text)));
    let further = [
        took.map(|took| format!("in {took}")),
        named("model", info.map(|info| &info.model)),
        named("device", info.map(|info| &info.device)),
        named("burnish", info.map(|info| &info.version)),
        info.and_then(|info| info.best.as_ref()).map(|best| format!("best {} at step {}", short(best.value), best.step)),
    ];
    std::iter::once(steps).chain(further.into_iter().flatten()).collect()
}

/// Makes a text of the run plain in Markdown.
fn cell(text: &str) -> String {
    let escaped = |c: char| match c {
        '\n' | '\r' => " ".to_owned(),
        '|' | '<' | '>' | '*' | '[' | ']' | '`' | '\\' | '@' | '#' => format!("\\{c}"),
        c => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Returns a block of code, whose fence is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_run::{RunInfo, RunState};
    use burnish_util::fs::write_atomic;

    #[test]
    fn a_run_is_a_table_and_its_texts_stay_text() {
        let dir = tempfile::tempdir().unwrap();
        let info = RunInfo {
            state: RunState::Failed,
            error: Some("```\n# no".into()),
            step: 2,
            total_steps: 9,
            started: 1.0,
            command: vec!["trainer".into(), "a=1".into()],
            ..RunInfo::new("ppo", "p", "a|b @you")
        };
        info.write(dir.path()).unwrap();
        let rows = "{\"step\":1,\"data\":{\"critic/score/mean\":0.25,\"val/a\":1}}\n\
                    {\"step\":2,\"data\":{\"critic/score/mean\":0.5,\"other\":1}}\n";
        write_atomic(&dir.path().join("metrics.jsonl"), rows.as_bytes()).unwrap();
        let text = markdown(dir.path()).unwrap();
        for part in [
            "### a\\|b \\@you: failed",
            "2 of 9 steps, in ",
            "````\n```\n# no\n````\n",
            "|---|---|---|\n| `critic/score/mean` | 0.25 (step 1) | 0.5 (step 2) |\n| `val/a` | 1 (step 1) | 1 (step 1) |\n",
            "```\ntrainer a=1\n```\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
