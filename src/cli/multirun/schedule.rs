//! Runs the jobs of a sweep, a few at a time, and keeps its record.

use std::collections::VecDeque;
use std::path::Path;
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use anyhow::Result;

use super::job::{RunningJob, last_error};
use super::plan::SweepPlan;
use burnish_report::record::RecordedRun;
use burnish_report::sweep::last_result;
use burnish_run::{JobState, SweepRecord};
use burnish_util::interrupt::Interrupt;
use burnish_util::lock::is_locked;
use burnish_util::number::short;
use burnish_util::platform::process_name;
use burnish_util::time::human;

/// Time between two looks at the jobs.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs all jobs that have not finished, in their order, `at_once` at a time. Returns their states; after a request to stop, some
/// jobs have not finished.
///
/// # Errors
/// If a process cannot be started, or the record cannot be written.
pub(super) fn run_all(plan: &SweepPlan, mut record: SweepRecord, at_once: usize, interrupt: &Interrupt) -> Result<SweepRecord> {
    let mut waiting: VecDeque<usize> =
        (0..record.jobs.len()).filter(|index| record.jobs[*index].state != JobState::Finished).collect();
    let threads =
        (at_once > 1).then(|| (available_parallelism().map_or(1, usize::from) / at_once.min(waiting.len().max(1))).max(1));
    let mut running: Vec<RunningJob> = vec![];
    let mut is_asked = false;
    while !running.is_empty() || !waiting.is_empty() && !is_asked {
        if interrupt.is_requested() && !is_asked {
            is_asked = true;
            tracing::info!("stopping: {} running jobs save; a second signal ends them at once", running.len());
            running.iter_mut().for_each(RunningJob::ask_to_stop);
        }
        while !is_asked && running.len() < at_once {
            let Some(index) = waiting.pop_front() else { break };
            let folder = plan.folder.join(&plan.jobs[index].name);
            if !wait_for_earlier(&folder, record.jobs[index].process.as_deref(), interrupt) {
                waiting.push_front(index);
                break;
            }
            let job = RunningJob::start(plan.subcommand, &plan.jobs[index], index, &folder, threads)?;
            tracing::info!("job {} of {}: {} starts", index + 1, plan.jobs.len(), plan.jobs[index].name);
            (record.jobs[index].state, record.jobs[index].process) = (JobState::Running, job.process.clone());
            record.write(&plan.folder)?;
            running.push(job);
        }
        let mut still = vec![];
        for mut job in running {
            let Some((state, described)) = job.ended()? else {
                still.push(job);
                continue;
            };
            let (index, folder) = (job.index, plan.folder.join(&plan.jobs[job.index].name));
            (record.jobs[index].state, record.jobs[index].process) = (state, None);
            record.write(&plan.folder)?;
            report(plan, &job, state, &described, &folder);
        }
        running = still;
        sleep(PAUSE);
    }
    Ok(record)
}

/// Waits until the process of a killed sweep's job has saved; returns false after a request to stop.
fn wait_for_earlier(folder: &Path, process: Option<&str>, interrupt: &Interrupt) -> bool {
    let id = |name: &str| name.split(' ').nth(1).and_then(|id| id.parse().ok());
    let lives = |name: &str| id(name).and_then(process_name).as_deref() == Some(name);
    let mut is_told = false;
    while process.is_some_and(lives) || is_locked(folder) == Some(true) {
        if interrupt.is_requested() {
            return false;
        }
        if !is_told {
            tracing::info!("waiting for an earlier process, which still saves in {}", folder.display());
            is_told = true;
        }
        sleep(PAUSE);
    }
    true
}

fn report(plan: &SweepPlan, job: &RunningJob, state: JobState, described: &str, folder: &Path) {
    let name = &plan.jobs[job.index].name;
    let head = format!("job {} of {}: {name} {described} after {}", job.index + 1, plan.jobs.len(), human(job.began.elapsed()));
    match state {
        JobState::Failed => {
            let message = last_error(folder).map_or(String::new(), |message| format!(": {message}"));
            tracing::warn!("{head}{message} (all output: {})", folder.join(burnish_run::CONSOLE).display());
        }
        _ => {
            let result = last_result(&RecordedRun::read(folder));
            let result = result.map_or(String::new(), |(metric, value)| format!(", {metric} {}", short(value)));
            tracing::info!("{head}{result}");
        }
    }
}
