//! The recipe file of a converted command.

use super::converted::{Blocked, Converted, placeholder};
use crate::config::shell::Hole;
use crate::hydra::Value;

/// Returns the text of the recipe: its command, verl's defaults, and the changes by the command.
pub fn write(converted: &Converted) -> String {
    let settings = &converted.settings;
    let mut text = String::from("# Converted from a command of verl by `trainer from-verl`.\n");
    let about = format!("# `defaults` takes verl's own defaults of {}; below is what the command changes.\n", converted.edition);
    text.push_str(&about);
    let ignored = converted.ignored.iter().map(|one| format!("{}={}: {}", one.key, one.value, one.reason)).collect();
    let open = converted.open.iter().map(|hole| format!("set me: {}", reason(hole))).collect();
    let blocks = [("ignored, because", ignored), ("further overrides that the script may add", open)];
    for (title, list) in blocks as [(&str, Vec<String>); 2] {
        let lines: String = list.iter().map(|line| format!("#   {line}\n")).collect();
        text.push_str(&if list.is_empty() { lines } else { format!("#\n# {title}\n{lines}") });
    }
    text.push_str(&format!("defaults:\n  - /{}\n  - _self_\n", converted.preset));
    if settings.value != Value::Map(Default::default()) {
        text.push_str(&format!("\n{}\n", settings.value.to_yaml()));
    }
    if !converted.blocked.is_empty() {
        text.push_str("\n# In the way, and commented out: the command needs what is not here.\n");
    }
    for (index, Blocked { key, value, reason }) in converted.blocked.iter().enumerate() {
        text.push_str(&format!("# {}. {}\n", index + 1, reason.replace('\n', " ")));
        text.push_str(&if key.is_empty() { String::new() } else { format!("#    {key}={value}\n") });
    }
    with_holes(&text, &converted.holes)
}

fn reason(hole: &Hole) -> String {
    format!("{} (line {})", hole.message, hole.line)
}

/// Replaces the value of each line that has a hole by `???`, which a run refuses, and says in a comment what is missing.
fn with_holes(text: &str, holes: &[Hole]) -> String {
    let line = |line: &str| {
        let inside: Vec<usize> = (0..holes.len()).filter(|hole| line.contains(&placeholder(*hole))).collect();
        if inside.is_empty() {
            return format!("{line}\n");
        }
        let shown = inside.iter().fold(line.to_string(), |shown, hole| shown.replace(&placeholder(*hole), "…"));
        if line.starts_with('#') {
            return format!("{shown}\n");
        }
        let start = line.len() - line.trim_start().len();
        let value = line[start..].find(": ").map_or_else(|| line[start..].find("- ").map(|at| at + 2), |at| Some(at + 2));
        let at = start + value.unwrap_or_default();
        let reasons: Vec<String> = inside.iter().map(|hole| reason(&holes[*hole])).collect();
        let whole = shown.get(at..).filter(|shown| *shown != "…").map_or(String::new(), |shown| format!("{shown}: "));
        format!("{}???  # set me: {whole}{}\n", &line[..at], reasons.join("; "))
    };
    text.lines().map(line).collect()
}
