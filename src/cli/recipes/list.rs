//! `trainer recipes`: the list of recipes.

use clap::Args;

use super::super::error::CliError;
use super::super::print::{print, print_data};
use super::shipped::{find, head, shipped};
use super::starters::STARTERS;

#[derive(Args)]
pub(crate) struct RecipesArgs {
    /// Print the text of this recipe
    name: Option<String>,
}

pub(crate) fn run(args: &RecipesArgs) -> Result<(), CliError> {
    match &args.name {
        None => print(&list()),
        Some(name) => print_data(find(name)?.1),
    }
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
