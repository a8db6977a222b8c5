//! The flags of a sweep, and its course.

use std::num::NonZeroUsize;

use clap::Args;

use super::super::args::ConfigArgs;
use super::super::dry_run_arg::DryRunArg;
use super::super::error::CliError;
use super::super::print::print;
use super::super::together::refuse_several;
use super::plan::SweepPlan;
use super::resume::open;
use super::schedule::run_all;
use burnish_config::{Loaded, Schema};
use burnish_distributed::Ranks;
use burnish_report::sweep::Sweep;
use burnish_run::{JobState, SweepRecord};
use burnish_util::interrupt::Interrupt;

#[derive(Args, Clone, Default)]
pub(crate) struct MultirunArgs {
    /// Start a run for each combination of values: key=a,b, key=choice(a,b), key=range(1,4), key=1..3
    #[arg(short, long)]
    multirun: bool,
    /// Number of runs at a time [default: 1]
    #[arg(long, value_name = "N", requires = "multirun")]
    jobs: Option<NonZeroUsize>,
}

impl MultirunArgs {
    pub(in super::super) fn is_requested(&self) -> bool {
        self.multirun
    }
}

/// Runs all jobs, or describes them for `--dry-run` by `describe`, which measures small steps if its last argument is true.
///
/// # Errors
/// All problems of the settings of all jobs; at the end, failed jobs, or an interruption.
pub(in super::super) fn run<C: Schema>(
    args: &MultirunArgs,
    config: &ConfigArgs,
    dry_run: DryRunArg,
    describe: fn(Loaded<C>, &Ranks, bool) -> anyhow::Result<String>,
) -> Result<(), CliError> {
    refuse_several()?;
    let (plan, loaded) = SweepPlan::new::<C>(config)?;
    if dry_run.is_set() {
        return show(&plan, loaded, |loaded| describe(loaded, &Ranks::alone(), dry_run.measures()));
    }
    let interrupt = Interrupt::on_signals().map_err(CliError::run)?;
    interrupt.watch_user_signal().map_err(CliError::run)?;
    let (record, _lock) = open(&plan).map_err(CliError::setup)?;
    let ended = run_all(&plan, record, args.jobs.map_or(1, NonZeroUsize::get), &interrupt);
    match Sweep::read(&plan.folder) {
        Ok(sweep) => print(&sweep.text())?,
        Err(error) => tracing::warn!("the results of the sweep cannot be read: {error:#}"),
    }
    verdict(&plan, &ended)
}

/// Prints the plan of each job.
fn show<C: Schema>(
    plan: &SweepPlan,
    loaded: Vec<Loaded<C>>,
    describe: impl Fn(Loaded<C>) -> anyhow::Result<String>,
) -> Result<(), CliError> {
    let (mut text, mut problems) = (String::new(), vec![]);
    for (job, loaded) in plan.jobs.iter().zip(loaded) {
        match describe(loaded) {
            Ok(described) => text += &format!("job {} in {}\n{described}\n", job.name, plan.folder.join(&job.name).display()),
            Err(error) => problems.push(format!("job {}: {error:#}", job.name)),
        }
    }
    if problems.is_empty() { print(&text) } else { Err(CliError::Setup(problems.join("\nerror: "))) }
}

/// Turns the states of the jobs into the exit code.
fn verdict(plan: &SweepPlan, record: &SweepRecord) -> Result<(), CliError> {
    let names = |state: JobState| {
        let jobs = record.jobs.iter().filter(move |job| job.state == state);
        jobs.map(|job| job.name.as_str()).collect::<Vec<_>>()
    };
    let count = record.jobs.len();
    let failed = names(JobState::Failed);
    let done = names(JobState::Finished).len();
    let folder = plan.folder.display();
    if done + failed.len() < count {
        let failures =
            if failed.is_empty() { String::new() } else { format!(", {} failed ({})", failed.len(), failed.join(", ")) };
        return Err(CliError::Interrupted(format!(
            "{done} of {count} jobs have finished{failures}; the same command resumes the sweep in {folder}"
        )));
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(CliError::Run(format!(
        "{} of {count} jobs failed: {}; console.log in the folder of each job below {folder} says why, and the same command \
         starts them again",
        failed.len(),
        failed.join(", ")
    )))
}
