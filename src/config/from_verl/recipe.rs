//! The recipe file of a converted command.

use super::converted::Converted;
use crate::hydra::{Node, Value};

/// Returns the text of the recipe: its command, verl's defaults, and the changes by the command.
pub fn write(converted: &Converted, settings: &Node) -> String {
    let mut text = String::from("# Converted from a command of verl by `trainer from-verl`.\n");
    let about = format!("# `defaults` takes verl's own defaults of {}; below is what the command changes.\n", converted.edition);
    text.push_str(&about);
    let ignored = converted.ignored.iter().map(|one| format!("{}={}: {}", one.key, one.value, one.reason)).collect();
    let refused = converted.refused.iter().map(|problem| problem.message.clone()).collect();
    for (title, list) in
        [("these settings are ignored", ignored), ("these settings end a run at its start", refused)] as [(&str, Vec<String>); 2]
    {
        let lines: String = list.iter().map(|line| format!("#   {line}\n")).collect();
        text.push_str(&if list.is_empty() { lines } else { format!("#\n# {title}\n{lines}") });
    }
    text.push_str(&format!("defaults:\n  - /{}\n  - _self_\n", converted.preset));
    if settings.value != Value::Map(Default::default()) {
        text.push_str(&format!("\n{}\n", settings.value.to_yaml()));
    }
    text
}
