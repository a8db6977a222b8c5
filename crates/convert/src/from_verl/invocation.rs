//! The call of a command or script: the program, its configuration and its overrides.

use super::converted::{Blocked, VerlSource, placeholder, without_placeholders};
use super::find::{VerlCall, find, named, unknown_program};
use super::programs::{PROGRAMS, Program, Support, batches, extended};
use crate::shell::{self, Launch, ScriptCalls, Unknown, replace_unknowns, unknowns_in};
use burnish_hydra::{Problem, overrides};

/// A call of one of verl's programs.
pub(super) struct Invocation {
    pub program: &'static Program,
    pub config: String,
    /// Folder of `--config-path`.
    pub path: Option<String>,
    pub overrides: Vec<String>,
    /// Other launches of the script.
    pub further: Vec<Launch>,
    /// Unknowns in the overrides.
    pub unknowns: Vec<Unknown>,
    /// Unknowns in place of whole overrides.
    pub unknown_words: Vec<Unknown>,
    /// Advice about the words.
    pub notes: Vec<String>,
    /// Name of a program that is not verl's own, but takes verl's keys.
    pub script: Option<String>,
    /// Words that are not overrides, of a program that is not verl's own.
    pub blocked: Vec<Blocked>,
}

impl Invocation {
    /// Returns the reason for leaving out a key that verl does not have.
    pub(super) fn reason(&self, reason: String) -> String {
        match self.script.as_deref() {
            None => reason,
            Some("") => "verl does not have this key; the program itself may read it".into(),
            Some(script) => format!("verl does not have this key; {script} itself may read it"),
        }
    }

    /// Leaves out a choice of a file that verl does not have.
    pub(super) fn not_read(&self, word: &str) -> Blocked {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let reason = self.reason(String::new());
        Blocked { key: key.trim_start_matches('+').into(), value: without_placeholders(value), reason }
    }
}

/// Reads the call that a text launches.
///
/// # Errors
/// If the text cannot be read, has no call of a program of verl, or a word of the call is not an override.
pub(super) fn invocation(source: &VerlSource) -> Result<Invocation, Problem> {
    let name = source.env.name;
    let at = |line: usize, message: &str| {
        let text = source.text.lines().nth(line - 1).unwrap_or_default().trim();
        Problem::new("", format!("{name}:{line}: {message}\n      {text}"))
    };
    let as_named = source.program.map(named).transpose()?;
    let is_meant = |words: &[String]| find(words, as_named).is_some();
    let script = shell::read(source.text, &source.env, &is_meant).map_err(|error| at(error.line, &error.message))?;
    let Some((line, call)) = script.calls.iter().find_map(|call| Some((call.line, find(&call.words, as_named)?))) else {
        if let Some(line) = script.ended {
            let help = "set its variables and arguments: trainer from-verl @script.sh NAME=VALUE -- ARGUMENT";
            return Err(at(line, "the script ends here, before it launches a trainer").help(help));
        }
        return Err(without_call(name, &script));
    };
    let mut read = words(name, line, &call, &script)?;
    let mut words = vec![];
    if let Some((base, overrides)) = extended(&read.config) {
        words.extend(overrides.iter().map(|word| word.to_string()));
        read.config = base.to_string();
    }
    words.append(&mut read.overrides);
    let counted = batches(call.program, &words);
    words.extend(counted);
    read.overrides = words;
    Ok(read)
}

/// Returns the problem of a text without a call of verl. It names the program that may take verl's keys.
fn without_call(name: &str, script: &ScriptCalls) -> Problem {
    let unknown = script.calls.iter().find_map(|call| Some((call.line, unknown_program(&call.words)?)));
    if let Some((line, program)) = unknown {
        let program = if program.is_empty() { "a program whose name is unknown".into() } else { format!("`{program}`") };
        let message = format!("{name}:{line} starts {program}, which is not a program of verl, with settings as key=value");
        return Problem::new("", message).help(
            "if it takes the keys of one of verl's programs, say which: --as main_ppo, --as fsdp_sft_trainer, --as main_generation",
        );
    }
    let known: Vec<&str> = PROGRAMS.iter().filter_map(|program| program.module.strip_prefix("verl.trainer.")).collect();
    let message = format!("{name}: there is no command of verl's own trainers");
    let help = format!(
        "supported are python3 -m verl.trainer.{{{}}}, the programs of verl's recipes, and your own programs around them (--as)",
        known.join(",")
    );
    Problem::new("", message).help(help)
}

/// Sorts the words of a call.
fn words(name: &str, line: usize, call: &VerlCall, script: &ScriptCalls) -> Result<Invocation, Problem> {
    let program = call.program;
    let mut read = Invocation {
        program,
        config: program.config.to_string(),
        path: None,
        overrides: vec![],
        further: script.further.clone(),
        unknowns: script.unknowns.clone(),
        unknown_words: vec![],
        notes: script.notes.clone(),
        script: call.script.clone(),
        blocked: vec![],
    };
    if let Some(script) = &call.script {
        let shown = if script.is_empty() { "the program, whose name is unknown," } else { script };
        read.notes.push(format!(
            "{name}:{line}: {shown} is not a program of verl, and is converted as {}; --as NAME names another",
            program.name()
        ));
    }
    if let Support::Schedule(advice) = program.support {
        read.notes.push(format!("{name}:{line}: `{}`: {advice}", program.module));
    }
    let filled: Vec<String> = call.words.iter().map(|word| without_unset(word, &script.unknowns)).collect();
    let unknowns = call.words.iter().flat_map(|word| unknowns_in(word)).map(|unknown| &script.unknowns[unknown]);
    for unknown in unknowns.filter(|unknown| unknown.is_unset) {
        let note = format!("{name}:{}: {}, and is empty, as in bash", unknown.line, unknown.message);
        if !read.notes.contains(&note) {
            read.notes.push(note);
        }
    }
    if filled.iter().any(|word| !word.is_empty() && word.trim().is_empty()) {
        read.notes.push(format!("{name}:{line}: a blank word of the command is left out; verl refuses it. A space after the backslash at the end of a line causes such a word, and ends the command"));
    }
    let mut words = filled.iter().filter(|word| !word.trim().is_empty()).peekable();
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value.to_string())));
        match flag {
            "--config-name" | "-cn" => {
                let name = value.or_else(|| words.next().cloned()).unwrap_or_default();
                let name = name.trim_end_matches(".yaml").to_string();
                let config = if name == "sft_trainer" { program.config } else { name.as_str() };
                read.config = config.to_string();
            }
            "--config-path" | "-cp" | "--config-dir" | "-cd" => read.path = value.or_else(|| words.next().cloned()),
            _ if !unknowns_in(flag).is_empty() => {
                // An unknown word can be any number of overrides.
                read.unknown_words.extend(unknowns_in(flag).into_iter().map(|unknown| script.unknowns[unknown].clone()));
            }
            _ => match &call.script {
                Some(script) if word.starts_with('-') || !is_readable(word) => {
                    let is_value = |next: &&String| word.starts_with('-') && !next.starts_with('-') && !next.contains('=');
                    let value = value.or_else(|| words.next_if(is_value).cloned());
                    let option = value.map_or(flag.to_string(), |value| format!("{flag} {value}"));
                    let option = replace_unknowns(&option, &|_| "…".into());
                    let reason = format!("{option}: an option of {script}, which is not read");
                    read.blocked.push(Blocked { key: String::new(), value: String::new(), reason });
                }
                None if word.starts_with('-') => {
                    return Err(Problem::new("", format!("`{word}` is not a supported option of {}", program.module))
                        .help("supported are overrides, key=value, and --config-path and --config-name"));
                }
                _ => read.overrides.push(replace_unknowns(word, &placeholder)),
            },
        }
    }
    Ok(read)
}

/// Returns true if Hydra can read a word, with any value of its unknowns.
fn is_readable(word: &str) -> bool {
    overrides::parse(&replace_unknowns(word, &placeholder)).is_ok()
}

/// Replaces unset variables by empty texts, as bash does.
fn without_unset(word: &str, unknowns: &[Unknown]) -> String {
    replace_unknowns(word, &|unknown| if unknowns[unknown].is_unset { String::new() } else { shell::mark(unknown) })
}
