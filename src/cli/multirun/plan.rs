//! The jobs of a sweep: their names, folders and settings, checked before any of them starts.

use std::collections::HashSet;
use std::path::PathBuf;

use super::super::args::ConfigArgs;
use super::super::error::CliError;
use crate::job::run_folder::DIR;
use burnish_config::{ConfigError, Loaded, Origin, Problem, Schema, Tree, Value};
use burnish_hydra::sweeps::{self, SweptOverride};
use burnish_report::compare::short_key;
use burnish_util::crc::IEEE;

const EXPERIMENT: &str = "trainer.experiment_name";
/// Hydra's setting of the folder of a sweep.
const SWEEP_DIR: &str = "hydra.sweep.dir";
/// End of the default name of a sweep's folder.
const SUFFIX: &str = "-sweep";

/// Settings that a sweep decides, and the reason.
const DECIDED: &[(&str, &str)] = &[
    (DIR, "each job has its own folder in that of the sweep, which hydra.sweep.dir=FOLDER names"),
    (EXPERIMENT, "each job is named by its swept values"),
    ("trainer.resume_mode", "each job resumes by itself"),
    ("trainer.resume_from_path", "each job resumes by itself"),
];
/// Folders that jobs must not share.
const OWN: &[&str] = &["trainer.rollout_data_dir", "trainer.validation_data_dir"];
/// Largest number of characters of a value, and of a whole name.
const LONGEST: (usize, usize) = (40, 150);

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
        let jobs = sweeps::product(&overrides).map_err(|problem| ConfigError { problems: vec![problem] })?;
        // The values in the order of the product: the last key changes first.
        let values = swept.iter().fold(vec![vec![]], |rows: Vec<Vec<String>>, (_, values)| {
            rows.into_iter().flat_map(|row| values.iter().map(move |value| [row.clone(), vec![value.clone()]].concat())).collect()
        });
        let mut args: Vec<ConfigArgs> = jobs.into_iter().map(|overrides| ConfigArgs { overrides, ..config.clone() }).collect();
        let first: Vec<Tree> = load_all::<C>(&args)?.into_iter().map(|loaded| loaded.tree).collect();
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
        let loaded = load_all::<C>(&args)?;
        check_shared(&loaded.iter().map(|loaded| &loaded.tree).collect::<Vec<_>>())?;
        let kind = burnish_config::kinds::KINDS.iter().find(|known| known.kind == C::KIND);
        let subcommand = kind.map_or("", |known| super::super::run_source::subcommand(known.command));
        let jobs = args.into_iter().zip(names).zip(values).zip(&loaded).map(|(((config, name), values), loaded)| {
            let settings = format!("{:08x}", IEEE.checksum(loaded.tree.as_written().to_yaml().as_bytes()));
            PlannedJob { name, values, config, settings }
        });
        Ok((Self { folder, keys, jobs: jobs.collect(), subcommand }, loaded))
    }
}

/// Refuses to sweep what the sweep decides itself.
fn check_keys(keys: &[String]) -> Result<(), CliError> {
    match DECIDED.iter().find(|(decided, _)| keys.iter().any(|key| key == decided)) {
        Some((key, why)) => Err(wrong(key, &format!("`{key}` cannot be swept: {why}"), "")),
        None => Ok(()),
    }
}

/// Loads the settings of all jobs. Equal problems of several jobs are reported once.
fn load_all<C: Schema>(jobs: &[ConfigArgs]) -> Result<Vec<Loaded<C>>, CliError> {
    let (mut loaded, mut problems) = (vec![], Vec::<Problem>::new());
    for (i, job) in jobs.iter().enumerate() {
        match if i == 0 { job.load::<C>() } else { job.load_quietly::<C>() } {
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

fn text<'a>(tree: &'a Tree, key: &str) -> Option<&'a str> {
    match tree.value(key) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn set(key: &str, value: &str) -> String {
    format!("{key}='{}'", value.replace('\'', "\\'"))
}

fn wrong(key: &str, message: &str, help: &str) -> CliError {
    let problem = Problem::new(key, message);
    ConfigError { problems: vec![if help.is_empty() { problem } else { problem.help(help) }] }.into()
}

/// Returns the folder that `hydra.sweep.dir=FOLDER` names.
fn folder_of(word: &str) -> Result<PathBuf, CliError> {
    let read = burnish_hydra::overrides::parse(word).map_err(|problem| ConfigError { problems: vec![problem] })?;
    let folder = read.value.and_then(|node| node.value.plain_text()).filter(|text| !text.is_empty() && !text.contains("${"));
    folder
        .map(PathBuf::from)
        .ok_or_else(|| wrong(SWEEP_DIR, &format!("`{word}` does not name a folder"), "write hydra.sweep.dir=FOLDER"))
}

/// Returns the default folder: that of the run without the sweep, with an ending.
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

/// Refuses settings with which jobs would not resume, would keep no record, or would write into the folder of another job.
fn check_shared(trees: &[&Tree]) -> Result<(), CliError> {
    if trees.iter().any(|tree| tree.value("trainer.val_only") == Some(&Value::Bool(true))) {
        let message = "`trainer.val_only=true` keeps no record, so that a sweep has nothing to compare";
        return Err(wrong(
            "trainer.val_only",
            message,
            "use `trainer generate` and `trainer eval` for models that are not trained",
        ));
    }
    let mode = "trainer.resume_mode";
    if let Some(tree) = trees.iter().find(|tree| text(tree, mode).is_some_and(|mode| mode != "auto")) {
        let given = tree.origin(mode).map_or(String::new(), |origin: &Origin| format!(" ({origin})"));
        let message = format!("`{mode}` must be auto in a sweep, which resumes its jobs itself{given}");
        return Err(wrong(mode, &message, "leave it out, or write trainer.resume_mode=auto"));
    }
    if std::env::var_os("VERL_FILE_LOGGER_PATH").is_some_and(|path| !path.is_empty()) {
        return Err(wrong("", "VERL_FILE_LOGGER_PATH names one metrics file for all jobs", "unset it: each job has its own"));
    }
    for key in OWN {
        let folders: Vec<&str> = trees.iter().filter_map(|tree| text(tree, key)).collect();
        if folders.iter().collect::<HashSet<_>>().len() < folders.len() {
            let help = format!("write {key}='${{{DIR}}}/{}'", key.rsplit('.').next().unwrap_or(key));
            return Err(wrong(key, &format!("all jobs would write into the same folder `{key}`"), &help));
        }
    }
    Ok(())
}

/// Returns a unique name for each job, of characters that need no quotes in a shell or an override.
fn names(keys: &[String], values: &[Vec<String>]) -> Vec<String> {
    let all: Vec<&str> = keys.iter().map(String::as_str).collect();
    let plain = |text: &str| -> String {
        let text = text.trim_matches(['\'', '"', '[', ']']);
        let skipped = text.chars().count().saturating_sub(LONGEST.0);
        let keep = |c: char| if c.is_ascii_alphanumeric() || ".-+".contains(c) { c } else { '_' };
        text.chars().skip(skipped).map(keep).collect()
    };
    let name = |values: &Vec<String>| {
        let parts = keys.iter().zip(values).map(|(key, value)| format!("{}-{}", plain(short_key(key, &all)), plain(value)));
        parts.collect::<Vec<_>>().join("_").chars().take(LONGEST.1).collect::<String>()
    };
    let mut seen = HashSet::new();
    let unique = |(i, values): (usize, &Vec<String>)| {
        let name = name(values);
        let numbered = if name.is_empty() { i.to_string() } else { format!("{name}_{i}") };
        if !name.is_empty() && seen.insert(name.to_lowercase()) { name } else { numbered }
    };
    values.iter().enumerate().map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_values_and_are_unique() {
        let named = |keys: &[&str], values: &[&[&str]]| {
            let rows: Vec<Vec<String>> = values.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
            names(&keys.iter().map(ToString::to_string).collect::<Vec<_>>(), &rows)
        };
        assert_eq!(
            named(&["a.optim.lr", "trainer.seed"], &[&["1e-6", "1"], &["1e-6", "2"]]),
            ["lr-1e-6_seed-1", "lr-1e-6_seed-2"]
        );
        assert_eq!(named(&["a.lr", "b.lr"], &[&["'x y'", "[1,2]"]]), ["a.lr-x_y_b.lr-1_2"]);
        assert_eq!(named(&["m"], &[&["a/b"], &["a_b"]]), ["m-a_b", "m-a_b_1"]);
        assert_eq!(named(&[], &[&[]]), ["0"]);
        let long = "x".repeat(300);
        assert!(named(&["p"], &[&[&long]])[0].len() < 60);
    }
}
