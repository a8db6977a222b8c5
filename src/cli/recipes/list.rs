//! `trainer recipes`: the list of recipes.

use clap::Args;
use serde_json::{Value, json};

use super::super::error::CliError;
use super::super::json::{JsonArg, print_rows};
use super::super::print::{print, print_data};
use super::shipped::{find, head, shipped};
use super::starters::{STARTERS, Starter};

#[derive(Args)]
pub(crate) struct RecipesArgs {
    /// Print the text of this recipe
    name: Option<String>,
    #[command(flatten)]
    json: JsonArg,
}

pub(crate) fn run(args: &RecipesArgs) -> Result<(), CliError> {
    match &args.name {
        Some(name) if args.json.json => print_rows([example(find(name)?)]),
        None if args.json.json => print_rows(STARTERS.iter().map(starter).chain(shipped().into_iter().map(example))),
        None => print(&list()),
        Some(name) => print_data(find(name)?.1),
    }
}

/// Returns the row of a recipe for the user's model and rows.
fn starter(starter: &Starter) -> Value {
    let command = format!("trainer init {} --model MODEL --data FILE", starter.name);
    json!({
        "name": starter.name, "own_data": true, "goal": starter.goal, "prepare": null, "hardware": null, "command": command,
    })
}

/// Returns the row of a recipe that names its model and rows.
fn example((name, text): (&str, &str)) -> Value {
    let of = |line: &str| head(text, line);
    json!({
        "name": name, "own_data": false, "goal": of("Goal"), "prepare": of("Prepare"), "hardware": of("Hardware"),
        "command": of("Command"),
    })
}

fn list() -> String {
    let mut text = "For your own model and rows: trainer init NAME --model MODEL --data FILE\n".to_owned();
    for starter in STARTERS {
        text.push_str(&row(starter.name, starter.goal));
    }
    text.push_str("\nExamples, with their own models and rows: trainer init NAME copies one, trainer recipes NAME prints it\n");
    for (name, recipe) in shipped() {
        let needs = head(recipe, "Prepare").map(|needs| format!(" First: {needs}.")).unwrap_or_default();
        let hardware = head(recipe, "Hardware").map(|hardware| format!(" [{hardware}]")).unwrap_or_default();
        text.push_str(&row(name, &format!("{}{needs}{hardware}", head(recipe, "Goal").unwrap_or_default())));
    }
    text
}

/// Returns the lines of a recipe in the list.
fn row(name: &str, goal: &str) -> String {
    format!("  {name}\n{}", wrapped(goal, 74).iter().map(|line| format!("      {line}\n")).collect::<String>())
}

/// Breaks a text at spaces into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width);
        match line {
            Some(line) => {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}
