//! The recipe file of a converted command.

use super::converted::{Blocked, Converted, placeholder};
use crate::config::defaults;
use crate::config::hole::to_be_set;
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
    with_holes(&text, converted)
}

fn reason(hole: &Hole) -> String {
    format!("{} (line {})", hole.message, hole.line)
}

/// Replaces the value of each line that has a hole by one that is to be set, and says in a comment what is missing.
fn with_holes(text: &str, converted: &Converted) -> String {
    let holes = &converted.holes;
    let defaults = defaults(converted.kind.default_file()).ok();
    // The keys above a line, with their indentation.
    let mut path: Vec<(usize, &str)> = vec![];
    let line = |line| {
        let inside: Vec<usize> = (0..holes.len()).filter(|hole| str::contains(line, &placeholder(*hole))).collect();
        let start = line.len() - line.trim_start().len();
        let is_item = line[start..].starts_with("- ");
        let (key, separator) = (line[start..].split_once(':'), if is_item { "- " } else { ": " });
        if let Some((key, _)) = key.filter(|_| !is_item && !line.starts_with('#')) {
            path.retain(|(indent, _)| *indent < start);
            path.push((start, key.trim_matches(['\'', '"'])));
        }
        if inside.is_empty() {
            return format!("{line}\n");
        }
        let shown = inside.iter().fold(line.to_string(), |shown, hole| shown.replace(&placeholder(*hole), "…"));
        if line.starts_with('#') {
            return format!("{shown}\n");
        }
        let at = line[start..].find(separator).map_or(start, |at| start + at + 2);
        let reasons: Vec<String> = inside.iter().map(|hole| reason(&holes[*hole])).collect();
        let whole = shown.get(at..).filter(|shown| *shown != "…").map_or(String::new(), |shown| format!("{shown}: "));
        let key = path.iter().map(|(_, key)| *key).collect::<Vec<_>>().join(".");
        let default = defaults.as_ref().filter(|_| !is_item).and_then(|tree| tree.value(&key));
        format!("{}{}  # set me: {whole}{}\n", &line[..at], to_be_set(&key, default), reasons.join("; "))
    };
    text.lines().map(line).collect()
}
