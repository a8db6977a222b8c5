//! The recipe file of a converted command.

use super::super::tree::{Node, Value};
use super::Converted;

/// The text of the recipe: its command, verl's defaults, and what the command changed.
pub fn write(converted: &Converted, settings: &Node) -> String {
    let mut text = String::from("# Converted from a command of verl by `trainer from-verl`.\n");
    let about = format!("# `defaults` takes verl's own defaults of {}; below is what the command changes.\n", converted.edition);
    text.push_str(&about);
    for (title, list) in [("ignored, because", &converted.ignored), ("refused here, because", &converted.refused)] {
        if !list.is_empty() {
            text.push_str(&format!("#\n# {title}\n"));
        }
        for one in list {
            text.push_str(&format!("#   {}={}: {}\n", one.key, one.value, one.reason));
        }
    }
    text.push_str(&format!("defaults:\n  - /{}\n  - _self_\n", converted.preset));
    if settings.value != Value::Map(vec![]) {
        text.push_str(&format!("\n{}\n", settings.value.to_yaml()));
    }
    text
}
