//! The examination of reward functions: reads rows, starts the functions once, and makes every probe within the time limit.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::bench::Bench;
use super::probe::Probe;
use super::probes::PROBES;
use super::reading::{self, Files};
use super::sampled::{LoadGeneration, sampled};
use super::study::Study;
use crate::job::hub_names;
use crate::job::reward_plan::RewardPlan;
use burnish_config::Loaded;
use burnish_config::schema::EvalConfig;
use burnish_data::Tokenizer;
use burnish_doctor::{Finding, Verdict};
use burnish_util::interrupt::Interrupt;

/// Options of an examination.
pub(crate) struct ExamineOptions {
    /// Time limit of all probes together.
    pub(crate) limit: Duration,
    /// Settings of the model whose responses are scored too, if one is named.
    pub(crate) generation: Option<LoadGeneration>,
}

/// The findings about reward functions.
pub(crate) struct Examination {
    /// Names of the functions.
    pub(crate) functions: Vec<String>,
    /// Number of rows examined, and in the files.
    pub(crate) rows: (usize, usize),
    /// Number of calls.
    pub(crate) calls: usize,
    pub(crate) took: Duration,
    pub(crate) findings: Vec<(&'static Probe, Finding)>,
}

impl Examination {
    /// Returns the number of probes with this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|(_, finding)| finding.verdict == verdict).count()
    }
}

/// Makes every probe of [`PROBES`], in their order.
///
/// # Errors
/// If the functions cannot be started, or the rows cannot be read or lack what a function needs.
pub(crate) fn examine(mut loaded: Loaded<EvalConfig>, options: &ExamineOptions) -> Result<Examination> {
    hub_names::find(&mut loaded)?.fetch(&mut loaded.config)?;
    let config = &loaded.config;
    let tokenizer = config.data.tokenizer.as_ref().map(|folder| Tokenizer::load(folder.as_path()).context("data.tokenizer"));
    let tokenizer = tokenizer.transpose()?;
    let plan = RewardPlan::start(config.rewards(), &Interrupt::default())?;
    let (needs, pool, asks_rules) = (plan.needs, plan.pool(), plan.asks_rules());
    let sampled = options.generation.as_ref().map(|load| sampled(&config.data, load)).transpose()?;
    let own = || Files { paths: config.data.path.paths(), responses: config.data.response_key.clone(), all: None };
    let (_folder, files) = sampled.map_or_else(|| (None, own()), |(folder, files)| (Some(folder), files));
    let (rows, all) = reading::read(&files, &config.data, needs, tokenizer.as_ref())?;
    if asks_rules {
        rows.iter().try_for_each(|row| burnish_reward::find(&row.data_source).map(drop).with_context(|| row.place.clone()))?;
    }
    let sources: BTreeSet<&str> = rows.iter().map(|row| row.data_source.as_str()).collect();
    let rewards = plan.rewards(&sources)?;
    rows.iter().try_for_each(|row| rewards.check(&row.input("", &[])).with_context(|| row.place.clone()))?;
    let start = Instant::now();
    let bench = Bench::new(&rewards, pool, &rows, tokenizer.as_ref(), start + options.limit);
    let functions = rewards.names().into_iter().map(str::to_owned).collect();
    let Ok(study) = Study::new(bench, &rows) else {
        bail!(
            "sample responses of {} rows got no scores within {:.0} s: give more with --seconds, or see whether the function hangs",
            rows.len(),
            options.limit.as_secs_f64()
        )
    };
    let not_reached = || Finding::not_reached("the time was over, or calls hung: see slow_growth, or give more with --seconds");
    let findings = PROBES.iter().map(|probe| (*probe, (probe.judge)(&study).unwrap_or_else(|_| not_reached()))).collect();
    let calls = study.bench.record().len();
    Ok(Examination { functions, rows: (rows.len(), all), calls, took: start.elapsed(), findings })
}
