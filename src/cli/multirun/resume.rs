//! The record of a sweep at its start: new, or that of an earlier process with the same jobs.

use anyhow::{Context, Result, bail};

use super::plan::SweepPlan;
use burnish_report::folder::is_run;
use burnish_report::record::{RecordedRun, RunStatus};
use burnish_run::{JobState, SWEEP, SweepJob, SweepRecord};
use burnish_util::lock::{FolderLock, lock};
use burnish_util::secret::hide;
use burnish_util::shell::{command_line, word};

/// Locks the folder of the sweep and opens its record. Jobs that an earlier process finished are kept.
///
/// # Errors
/// If the folder is that of a run, or of a sweep with other jobs; if another process runs the sweep.
pub(super) fn open(plan: &SweepPlan) -> Result<(SweepRecord, Option<FolderLock>)> {
    let folder = &plan.folder;
    if is_run(folder) {
        bail!("{} is the folder of a run: name another one for the sweep, with hydra.sweep.dir=FOLDER", folder.display());
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let lock = lock(folder)?;
    let mut record = new(plan);
    let has_record = folder.join(SWEEP).exists();
    if let Some(job) = plan.jobs.iter().map(|job| folder.join(&job.name)).find(|job| !has_record && is_run(job)) {
        let (job, new) = (job.display(), free(plan));
        bail!("{job} has a run, and {} has no {SWEEP}: write hydra.sweep.dir={}", folder.display(), word(&new));
    }
    if has_record {
        let earlier = SweepRecord::read(folder)?;
        check_same(plan, &record.hidden(), &earlier)?;
        for (job, earlier) in record.jobs.iter_mut().zip(earlier.jobs) {
            job.process = earlier.process;
            // The record of the run says more than that of the sweep, whose process may have been killed.
            job.state = match RecordedRun::read(&folder.join(&job.name)).status {
                RunStatus::Finished if is_run(&folder.join(&job.name)) => JobState::Finished,
                _ => JobState::Waiting,
            };
        }
        let done = record.jobs.iter().filter(|job| job.state == JobState::Finished).count();
        tracing::info!("resuming the sweep in {}: {done} of {} jobs have finished", folder.display(), record.jobs.len());
    }
    record.write(folder)?;
    Ok((record, lock))
}

fn new(plan: &SweepPlan) -> SweepRecord {
    let job = |job: &super::plan::PlannedJob| SweepJob {
        name: job.name.clone(),
        values: job.values.clone(),
        settings: job.settings.clone(),
        state: JobState::Waiting,
        process: None,
    };
    SweepRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args_os().map(|word| hide(&word.to_string_lossy()).into_owned()).collect(),
        keys: plan.keys.clone(),
        jobs: plan.jobs.iter().map(job).collect(),
    }
}

/// Refuses a sweep with other jobs than those of the earlier process.
fn check_same(plan: &SweepPlan, now: &SweepRecord, earlier: &SweepRecord) -> Result<()> {
    let swept = |record: &SweepRecord| -> Vec<(String, Vec<String>)> {
        record.jobs.iter().map(|job| (job.name.clone(), job.values.clone())).collect()
    };
    let settings = |record: &SweepRecord| record.jobs.iter().map(|job| job.settings.clone()).collect::<Vec<_>>();
    let list = |keys: &[String]| if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
    let difference = match () {
        () if now.keys != earlier.keys => format!("the swept keys were {}, and are {} now", list(&earlier.keys), list(&now.keys)),
        () if swept(now) != swept(earlier) => {
            format!("the values of {} were others ({} jobs, and {} now)", list(&now.keys), earlier.jobs.len(), now.jobs.len())
        }
        () if settings(now) != settings(earlier) && now.version != earlier.version => {
            format!("burnish {} began it, and this is {}, whose settings differ", earlier.version, now.version)
        }
        () if settings(now) != settings(earlier) => "settings that are not swept have changed".to_owned(),
        () => return Ok(()),
    };
    bail!(
        "{} has another sweep: {difference}. To resume that sweep: {}. To start this one: hydra.sweep.dir={}, or delete the folder",
        plan.folder.display(),
        command_line(&earlier.command),
        word(&free(plan)),
    )
}

/// Returns the first of NAME-2, NAME-3, … that does not exist.
fn free(plan: &SweepPlan) -> std::path::PathBuf {
    let name = plan.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let named = |i: u32| plan.folder.with_file_name(format!("{name}-{i}"));
    (2..).map(named).find(|folder| !folder.exists()).unwrap_or_default()
}
