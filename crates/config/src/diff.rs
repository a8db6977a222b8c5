//! `config diff`: the keys in which two resolved configurations differ.

use super::compat::{alike, inline};
use super::show::{json_value, source};
use super::tree::Tree;
use burnish_hydra::{Node, Value};

/// A key with the values of both sides; `None` if a side does not have the key.
pub struct Difference<'a> {
    pub key: String,
    pub sides: [Option<&'a Node>; 2],
}

/// Returns the keys that differ: first in the order of the first configuration, then the keys that only the second one has. A
/// list is one value.
pub fn diff<'a>(a: &'a Tree, b: &'a Tree) -> Vec<Difference<'a>> {
    let mut found = vec![];
    compare("", &a.root, &b.root, &mut found);
    found
}

fn compare<'a>(key: &str, a: &'a Node, b: &'a Node, found: &mut Vec<Difference<'a>>) {
    let below = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    match (&a.value, &b.value) {
        (Value::Map(ours), Value::Map(theirs)) => {
            for (name, node) in ours {
                match b.child(name) {
                    Some(other) => compare(&below(name), node, other, found),
                    None => found.push(Difference { key: below(name), sides: [Some(node), None] }),
                }
            }
            for (name, node) in theirs.iter().filter(|(name, _)| a.child(name).is_none()) {
                found.push(Difference { key: below(name), sides: [None, Some(node)] });
            }
        }
        (ours, theirs) if alike(ours, theirs) => {}
        _ => found.push(Difference { key: key.to_string(), sides: [Some(a), Some(b)] }),
    }
}

impl Difference<'_> {
    /// Returns the JSON object of the key, with both values and where they were set. The place of a missing value is null.
    pub fn to_json(&self) -> serde_json::Value {
        let value = |side: Option<&Node>| side.map(|node| json_value(&node.value));
        let place = |side: Option<&Node>| side.map(|node| source(&node.origin));
        let [a, b] = self.sides;
        serde_json::json!({ "key": self.key, "a": value(a), "b": value(b), "a_from": place(a), "b_from": place(b) })
    }
}

impl std::fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.key)?;
        let values = self.sides.map(|side| side.map_or("(missing)".to_string(), |node| inline(&node.value)));
        let width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0).min(40);
        for (sign, (value, side)) in ["-", "+"].iter().zip(values.iter().zip(self.sides)) {
            let line = format!("  {sign} {value:width$}   {}", side.map_or(String::new(), |node| source(&node.origin)));
            write!(f, "\n{}", line.trim_end())?;
        }
        Ok(())
    }
}
