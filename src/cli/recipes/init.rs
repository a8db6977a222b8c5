//! `trainer init`: writes a recipe for a user's model and rows.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use std::sync::Arc;

use super::super::conversion::{check, with_space};
use super::super::error::CliError;
use super::super::print::print;
use super::columns::{self, FoundColumns};
use super::lengths::{limit, measure, positions};
use super::shipped::{find, head};
use super::starters::{RL_BATCH, STAGE_BATCH, STARTERS, Starter};
use crate::job::built_in::or_built_in;
use burnish_config::compat::Kind;
use burnish_config::kinds::KINDS;
use burnish_config::recipe::{Entry, Recipe, Section};
use burnish_data::rows::FileRows;
use burnish_hydra::{Value, YamlSource, yaml};
use burnish_util::fs::write_atomic;
use burnish_util::shell::word;

#[derive(Args)]
pub(crate) struct InitArgs {
    /// Name of a recipe; `trainer recipes` lists them
    name: String,
    /// Folder or Hub name of the model to train
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Training rows: a file, or the name of a data set on the Hub
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// Validation rows [default: no validation]
    #[arg(long, value_name = "FILE")]
    val: Option<String>,
    /// File to write [default: NAME.yaml]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &InitArgs) -> Result<(), CliError> {
    let stem = args.name.rsplit('/').next().unwrap_or_default().trim_end_matches(".yaml");
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}.yaml")));
    if path.exists() && !(args.force && path.is_file()) {
        let way = if path.is_dir() { "it is a folder" } else { "--force replaces it" };
        return Err(CliError::setup(anyhow!("{} exists already: {way}, or --output FILE names another file", path.display())));
    }
    let (text, command) = match STARTERS.iter().find(|starter| starter.name == args.name) {
        Some(starter) => from_starter(starter, args)?,
        None => copied(args)?,
    };
    write_atomic(&path, text.as_bytes()).map_err(CliError::run)?;
    print(&format!("trainer {}--config {}\n", with_space(&command), word(&path)))
}

/// Returns the text of a shipped recipe and the subcommand that runs it.
fn copied(args: &InitArgs) -> Result<(String, String), CliError> {
    let (name, text) = find(&args.name)?;
    if args.model.is_some() || args.data.is_some() || args.val.is_some() {
        let names: Vec<&str> = STARTERS.iter().map(|starter| starter.name).collect();
        return Err(CliError::setup(anyhow!(
            "{name} names its own model and rows; recipes for yours are {}: trainer init {} --model MODEL --data FILE",
            names.join(", "),
            names.iter().find(|known| name.ends_with(*known)).unwrap_or(&names[0]),
        )));
    }
    let command = head(text, "Command").unwrap_or_default();
    let behind = command.split_whitespace().skip_while(|word| *word != "trainer").nth(1);
    let subcommand = behind.filter(|word| !word.starts_with('-')).unwrap_or_default();
    Ok((with_full_names(name, text), subcommand.to_owned()))
}

/// Returns the text of a recipe that includes its neighbours by their whole names: a copy has no neighbours.
fn with_full_names(name: &str, text: &str) -> String {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_neighbour = |included: &&str| find(&format!("{folder}/{included}")).is_ok();
    let line = |line: &str| match line.strip_prefix("  - ").filter(is_neighbour) {
        Some(included) => format!("  - /{folder}/{included}@_global_\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Writes a recipe for the user's model and rows.
fn from_starter(starter: &Starter, args: &InitArgs) -> Result<(String, String), CliError> {
    let (Some(model), Some(data)) = (&args.model, &args.data) else {
        return Err(CliError::setup(anyhow!(
            "give the model and the rows: trainer init {} --model MODEL --data FILE",
            args.name
        )));
    };
    let known = KINDS.iter().find(|known| known.kind == starter.kind).context("a kind").map_err(CliError::run)?;
    let is_rl = starter.kind == Kind::Rl;
    let mut draft = Draft::default();
    let model_key = if is_rl { "actor_rollout_ref.model.path" } else { "model.path" };
    draft.text(model_key, model, "");
    if starter.kind == Kind::Distill {
        draft.open("teacher.path", "folder or Hub name of the large model");
    }
    draft.text("data.train_files", data, "");
    match &args.val {
        Some(file) => draft.text("data.val_files", file, ""),
        None => draft.value("data.val_files", Value::Null, "no validation; a file of rows turns it on")?,
    }
    for (key, value, comment) in starter.settings.iter().copied().flatten() {
        draft.yaml(key, value, comment)?;
    }
    match rows(starter.kind, data)? {
        Some((rows, found)) => settings_of_rows(&mut draft, model, is_rl, &rows, &found)?,
        None if is_rl => draft.open(REWARD, REWARD_HELP),
        None => {}
    }
    draft.text("trainer.experiment_name", &format!("{}-{}", starter.name, name_of(data)), "names the folder of the run");
    let subcommand = known.command.split(' ').nth(1).filter(|word| !word.starts_with('-')).unwrap_or_default();
    let recipe = Recipe {
        about: vec![format!("Goal:     {}", starter.goal), "`trainer config explain KEY` explains a setting.".to_owned()],
        lists: vec![],
        preset: known.file,
        settings: draft.settings,
    };
    check(starter.kind, known.file, draft.overrides.iter().map(|word| format!("++{word}")).collect())?;
    for hole in &draft.holes {
        tracing::warn!("set {hole} in the recipe");
    }
    Ok((recipe.write(), subcommand.to_owned()))
}

const REWARD: &str = "custom_reward_function.path";
const REWARD_HELP: &str = "a Python file with compute_score (docs/rewards.md)";

/// Limits of lengths in tokens: of a response, and of prompts and whole texts that are not measured.
const RESPONSE: usize = 1024;
const PROMPT: usize = 1024;
const TEXT: usize = 2048;

/// Reads the rows of a local file; `None` for a data set on the Hub.
fn rows(kind: Kind, data: &str) -> Result<Option<(FileRows, FoundColumns)>, CliError> {
    let path = &or_built_in(Path::new(data)).map_err(CliError::setup)?;
    if !path.exists() && (data.starts_with("hf://") || path.extension().is_none() && data.matches('/').count() == 1) {
        return Ok(None);
    }
    let read = FileRows::read(&[path.to_owned()], &[], &columns::all()).map_err(CliError::setup)?;
    if read.is_empty() {
        return Err(CliError::setup(anyhow!("{data} has no rows")));
    }
    let first = read.row(0).map_err(CliError::setup)?;
    let found = columns::find(kind, &read, &first).map_err(|needed| {
        let columns: Vec<&str> = read.columns().collect();
        CliError::setup(anyhow!("{data} has the columns {}; this recipe needs {needed}", columns.join(", ")))
    })?;
    Ok(Some((read, found)))
}

/// Adds the settings that follow from the rows: columns, lengths, rewards.
fn settings_of_rows(draft: &mut Draft, model: &str, is_rl: bool, rows: &FileRows, found: &FoundColumns) -> Result<(), CliError> {
    for (key, value) in &found.settings {
        draft.yaml(key, value, "")?;
    }
    let batch = if is_rl { RL_BATCH } else { STAGE_BATCH };
    if rows.len() < batch {
        let few = rows.len().to_string();
        draft.yaml("data.train_batch_size", &few, "all rows")?;
        match is_rl {
            true => draft.yaml("actor_rollout_ref.actor.ppo_mini_batch_size", &few, "all rows")?,
            false => draft.yaml("data.micro_batch_size_per_gpu", "1", "rows in memory at once")?,
        }
    }
    let model = &or_built_in(Path::new(model)).map_err(CliError::setup)?;
    let max = positions(model).unwrap_or(usize::MAX);
    let measured = measure(model, rows, found.prompt, &found.response);
    let about = |tokens: usize| format!("the longest row has about {tokens} tokens");
    let (key, max_of_rows, unmeasured) =
        if is_rl { ("data.max_prompt_length", max / 2, PROMPT) } else { ("data.max_length", max, TEXT) };
    let measured = measured.map(|lengths| if is_rl { lengths.prompt } else { lengths.prompt + lengths.response });
    let length = measured.map_or(unmeasured, limit).min(max_of_rows);
    draft.yaml(key, &length.to_string(), &measured.map_or_else(|| "tokens".to_owned(), about))?;
    if !is_rl {
        return Ok(());
    }
    let response = RESPONSE.min(max - length);
    draft.yaml("data.max_response_length", &response.to_string(), "tokens; a longer response is cut")?;
    if found.is_text {
        draft.yaml("data.apply_chat_template", "true", "the prompt is a text, and becomes a message of the user")?;
    }
    if !found.scored {
        draft.open(REWARD, REWARD_HELP);
    }
    Ok(())
}

fn name_of(data: &str) -> String {
    let stem = Path::new(data).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    stem.chars().map(|c| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect()
}

/// The settings of a recipe, as its text has them and as overrides.
#[derive(Default)]
struct Draft {
    settings: Section,
    overrides: Vec<String>,
    holes: Vec<String>,
}

impl Draft {
    fn text(&mut self, key: &str, text: &str, comment: &str) {
        self.settings.put(key, Entry::Value { value: Value::Text(text.to_owned()), comment: comment.to_owned() });
        self.overrides.push(format!("{key}='{}'", text.replace('\'', "\\'")));
    }

    fn yaml(&mut self, key: &str, text: &str, comment: &str) -> Result<(), CliError> {
        let root = yaml::parse(&Arc::new(YamlSource { name: key.to_owned(), text: format!("value: {text}\n") }));
        let root = root.map_err(burnish_config::ConfigError::from)?;
        let value = root.child("value").map_or(Value::Null, |node| node.value.clone());
        self.value(key, value, comment)
    }

    fn value(&mut self, key: &str, value: Value, comment: &str) -> Result<(), CliError> {
        self.overrides.push(format!("{key}={}", burnish_hydra::inline(&value)));
        self.settings.put(key, Entry::Value { value, comment: comment.to_owned() });
        Ok(())
    }

    /// Adds a setting that the user must set.
    fn open(&mut self, key: &str, message: &str) {
        self.settings.put(key, Entry::to_be_set(key, None, message));
        self.holes.push(format!("{key}: {message}"));
    }
}
