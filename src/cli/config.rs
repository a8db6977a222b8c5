//! `trainer config`: shows, explains and compares configurations without running them.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

use super::args::ConfigArgs;
use super::error::CliError;
use super::json::{JsonArg, print_rows};
use super::kinds::choices;
use super::print::{note_first_run, print, print_data, warn_of_keys};
use burnish_config::diff::{Difference, diff};
use burnish_config::explain::explain;
use burnish_config::json_schema::schema;
use burnish_config::kinds::{ConfigKind, KINDS, infer, named};
use burnish_config::search::{search, search_rows};
use burnish_config::{Choices, ConfigError, Loaded, Request, ResolvedConfig, Tree, compose_untyped, resolve};
use burnish_util::fs::write_atomic;

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the resolved configuration
    Show(ConfigShowArgs),
    /// Explain a key: its meaning, its allowed values, its value and where that was set; or find keys by a word
    Explain(ExplainArgs),
    /// Print the JSON Schema of a kind of configuration for an editor, or write those of all kinds
    Schema(SchemaArgs),
    /// Compare two configurations; exit code 1 if they differ
    Diff(ConfigDiffArgs),
}

#[derive(Args)]
pub(crate) struct ConfigShowArgs {
    /// Format of the output
    #[arg(long, value_enum, default_value = "yaml")]
    format: Format,
    /// Show where each value was written
    #[arg(long)]
    sources: bool,
    /// Only compose, as Hydra does: any files, no types, no checks
    #[arg(long, conflicts_with = "kind")]
    untyped: bool,
    #[command(flatten)]
    kind: KindArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// A dotted key; or a word, which lists the keys that have it in their names or descriptions
    key: String,
    #[command(flatten)]
    json: JsonArg,
    #[command(flatten)]
    kind: KindArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Args)]
pub(crate) struct ConfigDiffArgs {
    /// A configuration: a name or a path, or in quotes `NAME OVERRIDE …`
    a: String,
    /// The configuration to compare with
    b: String,
    #[command(flatten)]
    json: JsonArg,
    #[command(flatten)]
    kind: KindArgs,
}

#[derive(Args)]
pub(crate) struct SchemaArgs {
    /// Kind of configuration [default: rl]
    #[arg(value_name = "KIND", value_parser = kinds())]
    kind: Option<String>,
    /// Write the schemas of all kinds to this folder, as ppo_trainer.json, sft_trainer.json and so on
    #[arg(long, value_name = "FOLDER", conflicts_with = "kind")]
    output: Option<PathBuf>,
}

/// The names of the kinds of configuration.
fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(KINDS.iter().map(|known| known.name))
}

#[derive(Args)]
struct KindArgs {
    /// Kind of configuration, if its name and its keys do not show it
    #[arg(long = "for", value_name = "KIND", value_parser = kinds())]
    kind: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

impl KindArgs {
    fn kind_or_inferred(&self, request: &Request) -> Result<&'static ConfigKind, ConfigError> {
        self.kind.as_deref().and_then(named).map_or_else(|| infer(request), Ok)
    }

    /// Returns the resolved configuration after all checks of a run.
    fn load(&self, request: &Request) -> Result<Tree, ConfigError> {
        let known = self.kind_or_inferred(request)?;
        let Loaded { tree, ignored, renamed, first_run, .. } = known.load(request, &choices(known.kind))?;
        warn_of_keys(&renamed, &ignored);
        note_first_run(first_run.as_deref());
        Ok(tree)
    }

    /// Returns the resolved configuration without the checks of a run.
    fn resolve(&self, request: &Request) -> Result<Tree, ConfigError> {
        let ResolvedConfig { tree, ignored, renamed, problems, .. } = resolve(self.kind_or_inferred(request)?.kind, request)?;
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        warn_of_keys(&renamed, &ignored);
        Ok(tree)
    }
}

pub(super) fn run(command: ConfigCommand) -> Result<(), CliError> {
    match command {
        ConfigCommand::Show(args) => show(&args),
        ConfigCommand::Explain(args) => explanation(&args),
        ConfigCommand::Schema(args) => schemas(&args),
        ConfigCommand::Diff(args) => differences(&args),
    }
}

/// Explains a key. A text that is not a key is a word, whose keys are listed.
fn explanation(args: &ExplainArgs) -> Result<(), CliError> {
    let request = args.config.request();
    let known = args.kind.kind_or_inferred(&request)?;
    let choices = choices(known.kind);
    let explained = match explain(known, &request, &choices, &args.key) {
        Err(error) => return if is_word(&args.key) { list_matching(known, args, &choices, error) } else { Err(error.into()) },
        Ok(explained) => explained,
    };
    warn_of_keys(&explained.renamed, &explained.ignored);
    if args.json.json { print_rows(explained.rows) } else { print(&explained.text) }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

/// Lists the keys that have the word, or returns the error if no key has it.
fn list_matching(known: &ConfigKind, args: &ExplainArgs, choices: &Choices, error: ConfigError) -> Result<(), CliError> {
    let word = args.key.replace('-', "_");
    match search(known, &word)? {
        None => Err(error.into()),
        Some(_) if args.json.json => print_rows(search_rows(known, &word, choices)?),
        Some(text) => print(&text),
    }
}

/// Prints a schema, or writes all.
fn schemas(args: &SchemaArgs) -> Result<(), CliError> {
    let text = |known: &ConfigKind| Ok::<_, ConfigError>(format!("{:#}\n", schema(known, &choices(known.kind))?));
    let Some(folder) = &args.output else {
        let known = args.kind.as_deref().and_then(named).unwrap_or(&KINDS[0]);
        return print_data(&text(known)?);
    };
    std::fs::create_dir_all(folder).map_err(|error| CliError::Setup(format!("--output {}: {error}", folder.display())))?;
    for known in KINDS {
        let path = folder.join(format!("{}.json", known.file));
        write_atomic(&path, text(known)?.as_bytes()).map_err(CliError::run)?;
    }
    print_data(&format!("{} schemas in {}\n", KINDS.len(), folder.display()))
}

fn show(args: &ConfigShowArgs) -> Result<(), CliError> {
    let request = args.config.request();
    let tree = if args.untyped { compose_untyped(&request)? } else { args.kind.load(&request)? };
    print_data(&match (args.format, args.sources) {
        (Format::Yaml, false) => tree.to_yaml(),
        (Format::Yaml, true) => tree.to_yaml_with_sources(),
        (Format::Json, false) => format!("{:#}\n", tree.to_json()),
        (Format::Json, true) => format!("{:#}\n", tree.to_json_with_sources()),
    })
}

fn differences(args: &ConfigDiffArgs) -> Result<(), CliError> {
    let [a, b] = [&args.a, &args.b].map(|text| args.kind.resolve(&request(text)));
    let (a, b) = (a?, b?);
    let list_matching = diff(&a, &b);
    if list_matching.is_empty() {
        return Ok(());
    }
    let lines = || list_matching.iter().map(|difference| format!("{difference}\n")).collect::<String>();
    match args.json.json {
        true => print_rows(list_matching.iter().map(Difference::to_json))?,
        false => print(&format!("--- {}\n+++ {}\n{}", args.a, args.b, lines()))?,
    }
    Err(CliError::Different)
}

/// Reads `NAME OVERRIDE …` as a request; without a name the request is for the default configuration.
fn request(text: &str) -> Request {
    let mut words = words(text);
    let is_override = |word: &String| word.contains('=') || word.starts_with(['+', '~']);
    let config = words.first().is_some_and(|word| !is_override(word)).then(|| words.remove(0));
    Request { config, overrides: words, ..Request::default() }
}

/// Splits a text at spaces, except inside brackets and inside quotes, which are removed as by a shell.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut depth) = (vec![], String::new(), None, 0);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (c, None) if c.is_whitespace() && depth == 0 => words.push(std::mem::take(&mut word)),
            _ => {
                depth += i32::from("[{".contains(c)) - i32::from("]}".contains(c));
                word.push(c);
            }
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}
