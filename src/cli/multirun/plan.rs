//! The jobs of a sweep: their names, folders and settings, checked before any of them starts.

use std::collections::HashSet;
use std::path::PathBuf;

use super::super::args::ConfigArgs;
use super::super::error::CliError;
use super::super::kinds::subcommand;
use super::check::{EXPERIMENT, check_keys, check_shared, text, wrong};
use super::names::names;
use crate::job::run_folder::DIR;
use burnish_config::{ConfigError, Loaded, Problem, Schema, Tree};
use burnish_hydra::sweeps::{self, SweptOverride};
use burnish_util::crc::IEEE;

/// Hydra's setting of the folder of a sweep.
const SWEEP_DIR: &str = "hydra.sweep.dir";
/// End of the default name of a sweep's folder.
const SUFFIX: &str = "-sweep";

/// The jobs, and the folder with their folders.
pub(super) struct SweepPlan {
    pub folder: PathBuf,
    /// Swept keys, as written, without signs.
    pub keys: Vec<String>,
    pub jobs: Vec<PlannedJob>,
    /// Subcommand of the jobs; empty for reinforcement learning.
    pub subcommand: &'static str,
}

/// A job with the command line of its process.
pub(super) struct PlannedJob {
    pub name: String,
    pub values: Vec<String>,
    pub config: ConfigArgs,
    /// Checksum of the settings.
    pub settings: String,
}

impl SweepPlan {
    /// Makes the jobs of a command, and loads the settings of each.
    pub(super) fn new<C: Schema>(config: &ConfigArgs) -> Result<(Self, Vec<Loaded<C>>), CliError> {
        let (given, words): (Vec<String>, Vec<String>) =
            config.overrides.iter().cloned().partition(|word| word.trim_start_matches('+').starts_with(&format!("{SWEEP_DIR}=")));
        let overrides = sweeps::read(&words).map_err(|problems| ConfigError { problems })?;
        let swept: Vec<(&SweptOverride, &[String])> = overrides.iter().filter_map(|one| Some((one, one.swept()?))).collect();
        let keys: Vec<String> = swept.iter().map(|(one, _)| one.key.trim_start_matches(['+', '~']).to_owned()).collect();
        check_keys(&keys)?;
        if !given.is_empty() && overrides.iter().any(|one| one.key.trim_start_matches('+') == DIR) {
            let message = format!("`{DIR}` and `{SWEEP_DIR}` both name the folder of the sweep");
            return Err(wrong(DIR, &message, &format!("leave out `{DIR}`")));
        }
        let jobs = sweeps::product(&overrides).map_err(|problem| ConfigError { problems: vec![problem] })?;
        // The values in the order of the product: the last key changes first.
        let values = swept.iter().fold(vec![vec![]], |rows: Vec<Vec<String>>, (_, values)| {
            rows.into_iter().flat_map(|row| values.iter().map(move |value| [row.clone(), vec![value.clone()]].concat())).collect()
        });
        let mut args: Vec<ConfigArgs> = jobs.into_iter().map(|overrides| ConfigArgs { overrides, ..config.clone() }).collect();
        let first: Vec<Tree> = load_all::<C>(&args, Reports::First)?.into_iter().map(|loaded| loaded.tree).collect();
        let folder = match given.last() {
            Some(word) => folder_of(word)?,
            None => shared_folder(&first)?,
        };
        let names = names(&keys, &values);
        for ((args, name), tree) in args.iter_mut().zip(&names).zip(&first) {
            let folder = folder.join(name);
            let Some(folder) = folder.to_str() else { return Err(wrong(SWEEP_DIR, "the folder is not text in UTF-8", "")) };
            let experiment = text(tree, EXPERIMENT).unwrap_or_default();
            args.overrides.push(set(DIR, folder));
            args.overrides.push(set(EXPERIMENT, &format!("{experiment}_{name}")));
        }
        let loaded = load_all::<C>(&args, Reports::None)?;
        check_shared(&loaded.iter().map(|loaded| &loaded.tree).collect::<Vec<_>>())?;
        let jobs = args.into_iter().zip(names).zip(values).zip(&loaded).map(|(((config, name), values), loaded)| {
            let settings = format!("{:08x}", IEEE.checksum(loaded.tree.as_written().to_yaml().as_bytes()));
            PlannedJob { name, values, config, settings }
        });
        Ok((Self { folder, keys, jobs: jobs.collect(), subcommand: subcommand(C::KIND) }, loaded))
    }
}

/// The jobs whose renamed and ignored keys are reported.
#[derive(PartialEq)]
enum Reports {
    First,
    None,
}

/// Loads the settings of all jobs. Equal problems of several jobs are reported once.
fn load_all<C: Schema>(jobs: &[ConfigArgs], reports: Reports) -> Result<Vec<Loaded<C>>, CliError> {
    let (mut loaded, mut problems) = (vec![], Vec::<Problem>::new());
    for (i, job) in jobs.iter().enumerate() {
        match if i == 0 && reports == Reports::First { job.load::<C>() } else { job.load_quietly::<C>() } {
            Ok(one) => loaded.push(one),
            Err(error) => error.problems.into_iter().for_each(|problem| {
                if problems.iter().all(|known| (&known.message, &known.key) != (&problem.message, &problem.key)) {
                    problems.push(problem);
                }
            }),
        }
    }
    if problems.is_empty() { Ok(loaded) } else { Err(ConfigError { problems }.into()) }
}

fn set(key: &str, value: &str) -> String {
    format!("{key}='{}'", value.replace('\'', "\\'"))
}

/// Returns the folder that `hydra.sweep.dir=FOLDER` names.
fn folder_of(word: &str) -> Result<PathBuf, CliError> {
    let read = burnish_hydra::overrides::parse(word).map_err(|problem| ConfigError { problems: vec![problem] })?;
    let folder = read.value.and_then(|node| node.value.plain_text()).filter(|text| !text.is_empty() && !text.contains("${"));
    folder
        .map(PathBuf::from)
        .ok_or_else(|| wrong(SWEEP_DIR, &format!("`{word}` does not name a folder"), "write hydra.sweep.dir=FOLDER"))
}

/// Returns the default folder: that of a single run, with `-sweep` behind it.
fn shared_folder(trees: &[Tree]) -> Result<PathBuf, CliError> {
    let folders: HashSet<&str> = trees.iter().filter_map(|tree| text(tree, DIR)).collect();
    match folders.into_iter().collect::<Vec<_>>()[..] {
        [folder] => Ok(PathBuf::from(format!("{}{SUFFIX}", folder.trim_end_matches('/')))),
        _ => Err(wrong(
            DIR,
            &format!("`{DIR}` differs between the jobs of the sweep"),
            "name the folder of the sweep: hydra.sweep.dir=FOLDER",
        )),
    }
}
