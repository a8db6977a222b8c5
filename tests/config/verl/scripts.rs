//! Shell scripts, against the words that bash itself passes to the programs they start, and against what they must not do.

use super::golden_folder;
use burnish::config::from_verl::{self, Converted, Source};
use burnish::config::shell::{Surroundings, holes_of, read, replace_holes};
use std::collections::HashMap;

/// A script of verl's kind with what it was called with and the words of its launch, as bash passed them.
struct Launching {
    script: String,
    text: String,
    arguments: Vec<String>,
    environment: HashMap<String, String>,
    launch: Vec<String>,
}

fn launching() -> Vec<Launching> {
    let path = golden_folder().join("verl-scripts/scripts.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let strings = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_string()).collect()
    };
    let parse = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let pairs = line["env"].as_object().unwrap().iter();
        let mut environment: HashMap<String, String> =
            pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_string())).collect();
        environment.insert("HOME".into(), "/home/user".into());
        Launching {
            script: line["script"].as_str().unwrap().to_string(),
            text: line["text"].as_str().unwrap().to_string(),
            arguments: strings(&line["args"]),
            environment,
            launch: strings(&line["launches"][0]),
        }
    };
    text.lines().map(parse).collect()
}

impl Launching {
    fn convert(&self) -> Result<Converted, String> {
        let environment = |name: &str| self.environment.get(name).cloned();
        let around = Surroundings {
            name: &self.script,
            arguments: &self.arguments,
            folder: "/repo".into(),
            sources: None,
            environment: &environment,
            now: 1_795_352_400,
        };
        from_verl::convert(&Source { text: &self.text, edition: None, around }).map_err(|error| error.to_string())
    }

    /// Returns the words of the trainer's launch as they are read, with what is not set as empty.
    fn words(&self) -> Result<Vec<String>, String> {
        let environment = |name: &str| self.environment.get(name).cloned();
        let around = Surroundings {
            name: &self.script,
            arguments: &self.arguments,
            folder: "/repo".into(),
            sources: None,
            environment: &environment,
            now: 1_795_352_400,
        };
        let script = read(&self.text, &around).map_err(|error| format!("{error:?}"))?;
        let hole = |index: usize| {
            let hole = &script.holes[index];
            if hole.is_unset { String::new() } else { format!("<{}>", hole.message) }
        };
        let is_launch = |word: &String| self.launch.contains(word) && word.contains("verl");
        let call = script.calls.iter().find(|call| call.words.iter().any(is_launch)).ok_or("no launch")?;
        let filled = call.words.iter().map(|word| (holes_of(word).is_empty(), replace_holes(word, &hole)));
        Ok(filled.filter(|(is_known, word)| *is_known || !word.is_empty()).map(|(_, word)| word).collect())
    }
}

/// Replaces what depends on the day and hour.
fn undated(word: &str) -> String {
    regex::Regex::new(r"20\d{6}(_?\d{2,6})?").unwrap().replace_all(word, "DATE").into_owned()
}

#[test]
fn golden_scripts_are_read_as_bash_reads_them() {
    let mut wrong = vec![];
    let all = launching();
    for one in &all {
        match one.words() {
            Err(error) => wrong.push(format!("{}: {error}", one.script)),
            Ok(words) => {
                let (words, launch): (Vec<_>, Vec<_>) =
                    (words.iter().map(|word| undated(word)).collect(), one.launch.iter().map(|word| undated(word)).collect());
                let differs = words.iter().zip(&launch).find(|(one, other)| one != other);
                if words != launch {
                    wrong.push(format!("{}: {} words for {}, {differs:?}", one.script, words.len(), launch.len()));
                }
            }
        }
    }
    println!("{} of {} scripts", all.len() - wrong.len(), all.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn golden_scripts_convert() {
    let (mut wrong, all) = (vec![], launching());
    for one in &all {
        let bash = burnish::util::shell::command_line(&one.launch);
        let ours = one.convert();
        let theirs = from_verl::convert(&Source { text: &bash, edition: None, around: Surroundings::of_text("command") });
        match (ours, theirs.map_err(|error| error.to_string())) {
            (Ok(ours), Ok(theirs)) if undated(&ours.recipe) == undated(&theirs.recipe) => {}
            (Ok(ours), Ok(theirs)) => wrong.push(format!("{}: other recipe\n{}\n{}", one.script, ours.recipe, theirs.recipe)),
            (Err(error), _) | (_, Err(error)) => wrong.push(format!("{}: {error}", one.script)),
        }
    }
    println!("{} of {} scripts", all.len() - wrong.len(), all.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
