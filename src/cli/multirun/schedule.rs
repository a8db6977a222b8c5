//! Runs the jobs of a sweep, a few at a time, and keeps its record.

use std::collections::VecDeque;
use std::path::Path;
use std::thread::{available_parallelism, sleep};
use std::time::Duration;

use super::job::RunningJob;
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
/// jobs have not finished. A job whose process cannot be started has failed.
pub(super) fn run_all(plan: &SweepPlan, mut record: SweepRecord, at_once: usize, interrupt: &Interrupt) -> SweepRecord {
    let mut waiting: VecDeque<usize> =
        (0..record.jobs.len()).filter(|index| record.jobs[*index].state != JobState::Finished).collect();
    let threads =
        (at_once > 1).then(|| (available_parallelism().map_or(1, usize::from) / at_once.min(waiting.len().max(1))).max(1));
    let mut running: Vec<RunningJob> = vec![];
    let (mut is_asked, mut is_told) = (false, false);
    while !running.is_empty() || !waiting.is_empty() && !is_asked {
        if interrupt.is_requested() && !is_asked {
            is_asked = true;
            tracing::info!("stopping: {} running jobs save; a second Ctrl-C ends them at once", running.len());
            running.iter_mut().for_each(RunningJob::ask_to_stop);
        }
        while !is_asked && running.len() < at_once {
            let folder = |index: &usize| plan.folder.join(&plan.jobs[*index].name);
            let still_saves =
                |index: &usize| lives(record.jobs[*index].process.as_deref()) || is_locked(&folder(index)) == Some(true);
            let Some(at) = waiting.iter().position(|index| !still_saves(index)) else {
                if let Some(index) = waiting.front().filter(|_| !is_told) {
                    tracing::info!("waiting for an earlier process, which still saves in {}", folder(index).display());
                    is_told = true;
                }
                break;
            };
            let Some(index) = waiting.remove(at) else { break };
            let name = &plan.jobs[index].name;
            match RunningJob::start(plan.subcommand, &plan.jobs[index], index, &folder(&index), threads) {
                Ok(job) => {
                    tracing::info!("job {} of {}: {name} starts", index + 1, plan.jobs.len());
                    (record.jobs[index].state, record.jobs[index].process) = (JobState::Running, job.process.clone());
                    running.push(job);
                }
                Err(error) => {
                    tracing::warn!("job {} of {}: {name} does not start: {error:#}", index + 1, plan.jobs.len());
                    (record.jobs[index].state, record.jobs[index].process) = (JobState::Failed, None);
                }
            }
            keep(&record, plan);
        }
        running.retain_mut(|job| {
            let Some((state, described)) = job.ended() else { return true };
            let (index, folder) = (job.index, plan.folder.join(&plan.jobs[job.index].name));
            (record.jobs[index].state, record.jobs[index].process) = (state, None);
            keep(&record, plan);
            report(plan, job, state, &described, &folder);
            false
        });
        sleep(PAUSE);
    }
    record
}

/// Writes the record. If that fails, as on a full disk, the jobs continue, since the records of their runs say more.
fn keep(record: &SweepRecord, plan: &SweepPlan) {
    if let Err(error) = record.write(&plan.folder) {
        tracing::warn!("the states of the jobs are not written: {error:#}");
    }
}

/// Returns true if the process of this name lives.
fn lives(process: Option<&str>) -> bool {
    let id = |name: &str| name.split(' ').nth(1).and_then(|id| id.parse().ok());
    process.is_some_and(|name| id(name).and_then(process_name).as_deref() == Some(name))
}

fn report(plan: &SweepPlan, job: &RunningJob, state: JobState, described: &str, folder: &Path) {
    let name = &plan.jobs[job.index].name;
    let head = format!("job {} of {}: {name} {described} after {}", job.index + 1, plan.jobs.len(), human(job.began.elapsed()));
    match state {
        JobState::Failed => {
            let message = job.last_error(folder).map_or(String::new(), |message| format!(": {message}"));
            tracing::warn!("{head}{message} (all output: {})", folder.join(burnish_run::CONSOLE).display());
        }
        _ => {
            let result = last_result(&RecordedRun::read(folder));
            let result = result.map_or(String::new(), |(metric, value)| format!(", {metric} {}", short(value)));
            tracing::info!("{head}{result}");
        }
    }
}
