//! Finds the call of a program of verl, or of a user's program that takes verl's keys.

use super::programs::{OTHER, PROGRAMS, Program};
use crate::shell::{TargetForm, targets};
use burnish_hydra::Problem;
use burnish_hydra::suggest::{closest, did_you_mean};

/// A call that verl's keys follow.
pub(super) struct VerlCall<'a> {
    pub program: &'static Program,
    /// Words after the name.
    pub words: &'a [String],
    /// Module or path of a program that is not verl's own.
    pub script: Option<String>,
}

/// Beginnings of names of users' programs, and the program of verl that they are built around.
const NAMES: &[(&str, &str)] = &[
    ("main_ppo", "main_ppo"),
    ("main_dapo", "main_dapo"),
    ("fsdp_sft_trainer", "fsdp_sft_trainer"),
    ("main_generation", "main_generation"),
];

/// Keys that only one of verl's programs has.
const KEYS: &[(&str, &str)] = &[
    ("actor_rollout_ref.", "main_ppo"),
    ("algorithm.adv_estimator=", "main_ppo"),
    ("model.partial_pretrain=", "fsdp_sft_trainer"),
];

/// Returns true if the words of a program call a trainer of verl.
pub fn is_command(words: &[String]) -> bool {
    find(words, None).is_some()
}

/// Finds the call in the words of a program. A program that is not verl's own counts as `named`.
pub(super) fn find<'a>(words: &'a [String], named: Option<&'static Program>) -> Option<VerlCall<'a>> {
    targets(words).into_iter().filter(|target| target.form != TargetForm::Program).find_map(|target| {
        let words = &words[target.at + 1..];
        let module = format!(".{}", target.name.trim_end_matches(".py").replace('/', "."));
        let script = || Some(target.name.clone());
        if let Some(program) = of_verl(&module) {
            return Some(VerlCall { program, words, script: None });
        }
        let has_keys = words.iter().any(|word| is_override(word));
        let program = named.filter(|_| has_keys).or_else(|| around(&module, words))?;
        Some(VerlCall { program, words, script: script() })
    })
}

/// Returns the program of verl with a module's name, which begins with a dot.
fn of_verl(module: &str) -> Option<&'static Program> {
    let is_verls = |of: &str| module.contains(of);
    if ![".verl.", ".recipe.", ".verl_"].iter().any(|of| is_verls(of)) {
        return None;
    }
    let named = PROGRAMS.iter().find(|program| module.ends_with(&format!(".{}", program.module)));
    let is_other = || {
        let last = module.rsplit('.').next().unwrap_or_default();
        last.starts_with("main_") && (is_verls(".recipe.") || is_verls(".experimental."))
    };
    named.or_else(|| is_other().then_some(&OTHER))
}

/// Returns the program of verl that a user's program is built around, by its name or by the keys of its call.
fn around(module: &str, words: &[String]) -> Option<&'static Program> {
    let last = module.rsplit('.').next().unwrap_or_default();
    let overrides = || words.iter().filter(|word| is_override(word)).map(|word| word.trim_start_matches(['+', '~']));
    let by_name = NAMES.iter().find(|(name, _)| last.starts_with(name)).filter(|_| overrides().next().is_some());
    let by_key = || KEYS.iter().find(|(key, _)| overrides().any(|word| word.starts_with(key)));
    by_name.or_else(by_key).and_then(|(_, program)| named(program).ok())
}

/// Returns true for a word such as `key=value`.
fn is_override(word: &str) -> bool {
    !word.starts_with('-') && word.contains('=')
}

/// Finds one of verl's programs by the last part of its name.
///
/// # Errors
/// If the program is not known.
pub(super) fn named(name: &str) -> Result<&'static Program, Problem> {
    let known = || PROGRAMS.iter().map(Program::name);
    let bare = name.trim_end_matches(".py").rsplit(['.', '/']).next().unwrap_or_default();
    PROGRAMS.iter().find(|program| program.name() == bare).ok_or_else(|| {
        let mut names: Vec<&str> = known().collect();
        names.sort_unstable();
        names.dedup();
        let suggestion = did_you_mean(closest(bare, known())).map_or(String::new(), |suggestion| format!("{suggestion} "));
        Problem::new("", format!("--as {name}: verl has no such program"))
            .help(format!("{suggestion}--as takes one of {}", names.join(", ")))
    })
}

/// Returns the Python program of a call with settings as `key=value`, for the advice to name its counterpart.
pub(super) fn unknown_program(words: &[String]) -> Option<String> {
    let with_keys = |at: usize| words[at + 1..].iter().any(|word| is_override(word));
    targets(words).into_iter().find(|target| with_keys(target.at)).map(|target| target.name)
}
