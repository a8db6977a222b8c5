//! Makes steps of a run again, with the pipeline of its kind.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};

use super::super::args::ConfigArgs;
use super::super::error::CliError;
use super::recorded::{Beginning, RecordedSteps};
use super::settings::{Scratch, of_replay};
use crate::job::replay::{ReplayPlan, ReplayedStep};
use crate::pipelines::distill::Distill;
use crate::pipelines::dpo::Dpo;
use crate::pipelines::rm::Rm;
use crate::pipelines::sft::Sft;
use crate::pipelines::stage::{self, Objective};
use crate::trainer::setup;
use burnish_config::PpoConfig;
use burnish_distributed::Ranks;
use burnish_run::Output;
use burnish_util::interrupt::Interrupt;
use burnish_util::time::human;

/// Steps to make again.
pub(super) struct Again<'a> {
    pub recorded: &'a RecordedSteps,
    pub from: Beginning,
    /// The first step that is shown, and the last one.
    pub shown: (u64, u64),
    /// Steps that are looked into.
    pub probed: std::ops::RangeInclusive<u64>,
    /// True to validate all shown steps.
    pub validates_all: bool,
    /// Overrides that count from the first shown step on.
    pub changes: &'a [String],
}

/// The steps made again, and the seconds that they took.
pub(super) struct MadeSteps {
    pub steps: Vec<ReplayedStep>,
    pub seconds: f64,
}

impl Again<'_> {
    /// Makes the steps in a scratch folder, from the working folder of the run. The folder of the run is only read.
    ///
    /// # Errors
    /// Wrong input, if the settings or files of the run do not fit any longer; the errors of a step.
    pub(super) fn make(&self, output: &Output) -> Result<MadeSteps, CliError> {
        let start = Instant::now();
        let cwd = &self.recorded.info.cwd;
        match cwd.is_dir() {
            true => std::env::set_current_dir(cwd).map_err(|error| CliError::setup(error.into()))?,
            false => tracing::warn!("{} is gone: paths of settings begin in this folder", cwd.display()),
        }
        let scratch = Scratch::new().map_err(CliError::setup)?;
        scratch.copy_results_of_tools(&self.recorded.dir).map_err(CliError::setup)?;
        let (first, until) = self.shown;
        let plan = ReplayPlan {
            until,
            probed: self.probed.clone(),
            validated: first..=until,
            validates_all: self.validates_all,
            saves: false,
        };
        let mut steps = Vec::new();
        let mut from = self.from.clone();
        if !self.changes.is_empty() && from.step + 1 < first {
            // The steps before the change are those of the run.
            let before = ReplayPlan { until: first - 1, saves: true, ..plan.clone() };
            steps = self.part(&scratch, &from, &[], &before, output)?;
            let checkpoint = scratch.run().join(format!("global_step_{}", first - 1));
            from = Beginning { step: first - 1, checkpoint: Some(checkpoint) };
        }
        steps.extend(self.part(&scratch, &from, self.changes, &plan, output)?);
        Ok(MadeSteps { steps, seconds: start.elapsed().as_secs_f64() })
    }

    fn part(
        &self,
        scratch: &Scratch,
        from: &Beginning,
        changes: &[String],
        plan: &ReplayPlan,
        output: &Output,
    ) -> Result<Vec<ReplayedStep>, CliError> {
        let args = of_replay(self.recorded, self.shown.0, from, scratch, changes).map_err(CliError::setup)?;
        let output = Output { records: false, ..output.clone() };
        let kind = KINDS.iter().find(|(name, _)| *name == self.recorded.info.kind);
        let (_, make) = kind.ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            CliError::setup(anyhow!("run.json: a replay makes runs of {}, not of {}", names.join(", "), self.recorded.info.kind))
        })?;
        make(&args, &output, plan)
    }
}

type Make = fn(&ConfigArgs, &Output, &ReplayPlan) -> Result<Vec<ReplayedStep>, CliError>;

/// Kinds of runs in run.json.
const KINDS: &[(&str, Make)] = &[
    ("ppo", reinforced),
    ("sft", of_stage::<Sft>),
    ("rm", of_stage::<Rm>),
    ("dpo", of_stage::<Dpo>),
    ("distill", of_stage::<Distill>),
];

fn reinforced(args: &ConfigArgs, output: &Output, plan: &ReplayPlan) -> Result<Vec<ReplayedStep>, CliError> {
    let loaded = args.load_quietly::<PpoConfig>()?;
    let run = setup::start(loaded, output, Interrupt::default(), Ranks::alone()).map_err(CliError::setup)?;
    run.replay(plan).map_err(CliError::run)
}

fn of_stage<O: Objective>(args: &ConfigArgs, output: &Output, plan: &ReplayPlan) -> Result<Vec<ReplayedStep>, CliError> {
    let loaded = args.load_quietly::<O::Config>()?;
    let run = stage::start::<O>(loaded, output, Interrupt::default(), Ranks::alone()).map_err(CliError::setup)?;
    run.replay(plan).map_err(CliError::run)
}

/// Refuses a replay that would take longer than the limit, in seconds. `steps`: the number of steps to make.
///
/// # Errors
/// If the recorded times of the steps say so.
pub(super) fn check_cost(steps: u64, seconds: f64, from: &Beginning, limit: f64) -> Result<()> {
    ensure!(limit >= 0.0, "--limit is {limit}: give a number of seconds, 0 or more");
    if seconds > limit {
        let place = place(from);
        bail!("{steps} steps from {place} take about {seconds:.0} s, and the limit is {limit:.0} s: --limit SECONDS raises it");
    }
    Ok(())
}

/// Returns a few words about where a replay begins.
pub(super) fn place(from: &Beginning) -> String {
    match &from.checkpoint {
        Some(checkpoint) => checkpoint.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        None => "the start of the run".to_owned(),
    }
}

/// Returns seconds in a readable unit.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { human(Duration::try_from_secs_f64(seconds).unwrap_or_default()) }
}
