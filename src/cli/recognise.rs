//! The source of `trainer run`: a recipe, or a script, a file of options, a program or a command of another library.

use std::path::Path;

use anyhow::anyhow;

use super::conversion::ScriptSource;
use super::error::CliError;
use burnish_config::kinds::KINDS;
use burnish_convert::from_openrlhf::OPENRLHF;
use burnish_convert::from_trl::TRL;
use burnish_convert::from_verl;
use burnish_convert::peers::Peer;
use burnish_convert::shell;
use burnish_hydra::{Value, YamlSource, yaml};
use burnish_util::foreign;
use std::sync::Arc;

/// A library whose commands are converted.
#[derive(Clone, Copy)]
pub(super) enum SourceLibrary {
    Verl,
    Peer(&'static Peer),
}

impl SourceLibrary {
    fn name(self) -> &'static str {
        match self {
            Self::Verl => "verl",
            Self::Peer(peer) => peer.name,
        }
    }

    fn has(self, words: &[String]) -> bool {
        match self {
            Self::Verl => from_verl::is_command(words),
            Self::Peer(peer) => (peer.find)(words).is_some_and(|call| peer.trainer(&call.stage).is_some()),
        }
    }
}

/// The libraries; TRL is last, because any Python program may be a program of TRL.
const LIBRARIES: [SourceLibrary; 3] = [SourceLibrary::Verl, SourceLibrary::Peer(&OPENRLHF), SourceLibrary::Peer(&TRL)];

/// Examples for a text in which no command is found.
const EXAMPLES: &str = "write a script as @run.sh, a recipe as recipe.yaml, or a command in quotes, such as \
                        'python3 -m verl.trainer.main_ppo …', 'trl grpo …' or 'python3 -m openrlhf.cli.train_ppo_ray …'";

/// Returns true if a YAML file is a recipe, and not a file of another library's options, which has no sections.
///
/// # Errors
/// If the file cannot be read or is not YAML.
pub(super) fn is_recipe(path: &str) -> Result<bool, CliError> {
    let text = foreign::read_text(Path::new(path), foreign::SETTINGS).map_err(CliError::setup)?;
    let root = yaml::parse(&Arc::new(YamlSource { name: path.to_owned(), text })).map_err(burnish_config::ConfigError::from)?;
    let Value::Map(entries) = &root.value else { return Ok(true) };
    let is_section = |name: &str| {
        let has = |known: &burnish_config::kinds::ConfigKind| known.defaults().is_ok_and(|tree| tree.value(name).is_some());
        name == "defaults" || KINDS.iter().any(has)
    };
    let is_nested = |value: &Value| matches!(value, Value::Map(_) | Value::List(_));
    Ok(entries.is_empty() || entries.iter().any(|(name, node)| is_nested(&node.value) && is_section(name)))
}

/// Returns the library of a Python program, by its imports.
///
/// # Errors
/// If the program imports none of them.
pub(super) fn library_of_program(path: &str) -> Result<SourceLibrary, CliError> {
    let text = foreign::read_text(Path::new(path), foreign::SETTINGS).map_err(CliError::setup)?;
    let imports = |name: &str| {
        let is_import = |line: &str| {
            let mut words = line.split([' ', '.', ',', '\t']);
            matches!(words.next(), Some("import" | "from")) && words.next() == Some(name)
        };
        text.lines().any(|line| is_import(line.trim_start()))
    };
    let found = LIBRARIES.into_iter().find(|library| imports(&library.name().to_lowercase()));
    found.ok_or_else(|| CliError::setup(anyhow!("{path} imports neither verl, TRL nor OpenRLHF: {EXAMPLES}")))
}

/// Returns the library of the first command in a script or a quoted command. Commands of other libraries are reported.
///
/// # Errors
/// If the text is not a script, or has no command of these libraries.
pub(super) fn library_of_script(given: &ScriptSource, text: &str) -> Result<SourceLibrary, CliError> {
    let name = given.name;
    let is_known = |words: &[String]| LIBRARIES.iter().any(|library| library.has(words));
    let read = given.within(|env| shell::read(text, &env, &is_known))?;
    let script = read.map_err(|error| CliError::setup(anyhow!("{name}:{}: {}", error.line, error.message)))?;
    let of = |words: &[String]| LIBRARIES.into_iter().find(|library| library.has(words));
    let mut found = script.calls.iter().filter_map(|call| Some((call.line, of(&call.words)?)));
    let Some((_, library)) = found.next() else {
        let message = match script.ended {
            Some(line) => anyhow!(
                "{name}:{line}: the script ends here, before it launches a trainer: give its variables as NAME=VALUE, and its \
                 arguments after `--`"
            ),
            None => anyhow!("{name}: there is no command of verl, TRL or OpenRLHF: {EXAMPLES}"),
        };
        return Err(CliError::setup(message));
    };
    for (line, other) in found.filter(|(_, other)| other.name() != library.name()) {
        tracing::warn!("{name}:{line} is a command of {}; --line {line} runs it", other.name());
    }
    Ok(library)
}
