//! Shows everything about one run as text: `trainer runs show`.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::disk::{bytes_of, size};
use super::record::RecordedRun;
use super::series::{Series, read_end};
use burnish_checkpoint::{BEST_FILE, TRACKER_FILE};
use burnish_run::{RecordedAlarm, RunInfo};
use burnish_util::excerpt::{cell, cut_lines, first_items};
use burnish_util::foreign;
use burnish_util::shell::command_line;
use burnish_util::strftime::strftime;
use burnish_util::time::{human, unix_time};

/// Number of columns before the values.
const WIDTH: usize = 13;
const LONG: &[&str] = &["command", "to resume"];
const RESUME: &str = "trainer.resume_mode";

/// Returns everything known about the run in this folder, as text.
pub fn show(dir: &Path) -> String {
    let record = RecordedRun::read(dir);
    let mut series = Series::default();
    let unread = read_end(&record.metrics, &mut series).err().map(|error| format!("{error:#}"));
    let mut text = String::new();
    for (name, value) in lines(&record, &series) {
        // A command is copied, so that more of it is shown.
        let value = if LONG.contains(&name) { cut_lines(&value).into_owned() } else { cell(&value) };
        _ = writeln!(text, "{name:WIDTH$}{value}");
    }
    for problem in record.problems.iter().chain(&unread) {
        _ = writeln!(text, "{:WIDTH$}{}", "problem", cell(problem));
    }
    section(&mut text, "checkpoints", &checkpoints(&record));
    section(&mut text, "files", &files(&record));
    if let Some(step) = series.last_step() {
        let metrics: Vec<[String; 2]> = series.at(step).map(|(name, value)| [name.to_owned(), format!("{value}")]).collect();
        section(&mut text, &format!("metrics of step {step}"), &metrics);
    }
    text
}

fn lines(record: &RecordedRun, series: &Series) -> Vec<(&'static str, String)> {
    let mut lines = vec![("run", record.name()), ("state", record.describe())];
    let step = record.step(series).map_or_else(|| "?".to_owned(), |step| step.to_string());
    lines.push(("step", record.total_steps().map_or_else(|| step.clone(), |total| format!("{step} of {total}"))));
    lines.push(("folder", record.dir.display().to_string()));
    let Some(info) = &record.info else { return lines };
    let at = |time: f64| {
        let date = strftime("%F %T UTC", time as i64, 0).unwrap_or_default();
        format!("{date}, {} ago", human(Duration::try_from_secs_f64(unix_time() - time).unwrap_or_default()))
    };
    let alarm = |one: &RecordedAlarm| format!("{} at step {}: {}. {}", one.name, one.step, one.sentence, one.remedy);
    let further = [
        ("error", info.error.clone()),
        ("no signal", info.no_signal.clone()),
        ("id", Some(info.id.clone())),
        ("project", Some(info.project.clone())),
        ("kind", Some(info.kind.clone())),
        ("model", Some(info.model.clone())),
        ("device", Some(info.device.clone())),
        ("burnish", Some(info.version.clone())),
        ("started", record.started().map(at)),
        ("ended", record.ended().map(at)),
        ("took", record.worked().map(|seconds| human(Duration::try_from_secs_f64(seconds).unwrap_or_default()))),
        ("resumed", Some(info.resumed.iter().map(|step| format!("after step {step}")).collect::<Vec<_>>().join(", "))),
        ("best", info.best.as_ref().map(|best| format!("{} {} at step {}", best.metric, best.value, best.step))),
        ("process", (info.pid > 0).then(|| format!("{} on {}", info.pid, info.host))),
        ("command", Some(command_line(&info.command))),
        ("to resume", record.resumable().then(|| resume(info))),
    ];
    lines.extend(info.alarms.iter().map(|one| ("alarm", alarm(one))));
    lines.extend(further.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?))));
    lines
}

/// Returns the command that resumes the run: the same command in its working folder, with the resume setting added if needed.
fn resume(info: &RunInfo) -> String {
    let resumes = info.config.iter().find(|setting| setting.key == RESUME).is_none_or(|setting| setting.value == "auto");
    let further = if resumes { String::new() } else { format!(" {RESUME}=auto") };
    let elsewhere = std::env::current_dir().is_ok_and(|here| here != info.cwd);
    let cd = if elsewhere { format!("{} && ", command_line(&[OsStr::new("cd"), info.cwd.as_os_str()])) } else { String::new() };
    format!("{cd}{}{further}", command_line(&info.command))
}

fn checkpoints(record: &RecordedRun) -> Vec<[String; 2]> {
    let named = |file: &str| {
        foreign::read_text(&record.dir.join(file), foreign::WORD).ok().and_then(|step| step.trim().parse::<u64>().ok())
    };
    let (latest, best) = (named(TRACKER_FILE), named(BEST_FILE));
    let row = |checkpoint: &burnish_checkpoint::CheckpointEntry| {
        let notes = [(latest == Some(checkpoint.step), ", the latest"), (best == Some(checkpoint.step), ", the best")];
        let notes: String = notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect();
        let name = checkpoint.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        [name, format!("{}{notes}", checkpoint.bytes.map_or_else(|| "damaged".to_owned(), size))]
    };
    record.checkpoints.iter().map(row).collect()
}

/// Lists the other files in the folder, such as logs and files of trackers, and metrics outside the folder.
fn files(record: &RecordedRun) -> Vec<[String; 2]> {
    let entries = fs::read_dir(&record.dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_other = |path: &std::path::PathBuf| {
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && record.checkpoints.iter().all(|checkpoint| checkpoint.dir != *path)
    };
    let mut paths: Vec<_> = entries.filter(is_other).collect();
    paths.sort();
    if !paths.contains(&record.metrics) && record.metrics.exists() {
        paths.push(record.metrics.clone());
    }
    let row = |path: &std::path::PathBuf| {
        let name = path.strip_prefix(&record.dir).unwrap_or(path).display().to_string();
        [format!("{name}{}", if path.is_dir() { "/" } else { "" }), size(bytes_of(path))]
    };
    paths.iter().map(row).collect()
}

fn section(text: &mut String, title: &str, rows: &[[String; 2]]) {
    if rows.is_empty() {
        return;
    }
    let rows = rows.iter().map(|row| row.each_ref().map(|part| cell(part))).collect();
    let rows = first_items(rows, |left| [format!("… and {left} more"), String::new()]);
    let width = rows.iter().map(|[name, _]| name.chars().count()).max().unwrap_or(0);
    _ = writeln!(text, "\n{title}");
    for [name, value] in &rows {
        _ = writeln!(text, "{}", format!("  {name:width$}  {value}").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use burnish_run::{RecordedSetting, RunState};
    use burnish_util::fs::write_atomic;

    #[test]
    fn one_run_is_told_with_the_command_that_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let info = RunInfo {
            state: RunState::Failed,
            error: Some("no memory".into()),
            phase: Some("gen".into()),
            step: 3,
            total_steps: 9,
            started: 1.0,
            command: vec!["trainer".into(), RESUME.to_owned() + "=disable"],
            config: vec![RecordedSetting { key: RESUME.into(), value: json!("disable"), from: "x".into() }],
            ..RunInfo::new("ppo", "p", "e")
        };
        info.write(dir.path()).unwrap();
        let manifest = json!({"burnish": "0", "step": 2, "sequence": 1, "files": []}).to_string();
        let rows = "{\"step\":2,\"data\":{\"a\":1}}\n{\"step\":3,\"data\":{\"a\":0.1,\"bb\":\"NaN\"}}\n";
        for (file, text) in [
            ("global_step_2/manifest.json", manifest.as_str()),
            ("global_step_1/actor/x", ""),
            (TRACKER_FILE, "2"),
            ("metrics.jsonl", rows),
            ("wandb/run/x", "1234567"),
        ] {
            write_atomic(&dir.path().join(file), text.as_bytes()).unwrap();
        }
        std::os::unix::fs::symlink("..", dir.path().join("wandb/up")).unwrap();
        let text = show(dir.path());
        for part in [
            "state        failed in gen, resumable\nstep         3 of 9\n",
            "error        no memory\n",
            "started      1970-01-01 00:00:01 UTC, ",
            "to resume    trainer trainer.resume_mode=disable trainer.resume_mode=auto\n",
            "\ncheckpoints\n  global_step_2  0 B, the latest\n  global_step_1  damaged\n",
            "  wandb/                             7 B\n",
            "\nmetrics of step 3\n  a   0.1\n  bb  NaN\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}
