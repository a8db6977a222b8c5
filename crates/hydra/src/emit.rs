//! Writes a value as YAML in block style. A string that a YAML reader could take for another type is quoted.

use super::scalar;
use super::tree::{Map, Node, Value};

impl Value {
    /// Returns the YAML of this value without a line break at the end; a scalar is on one line.
    pub fn to_yaml(&self) -> String {
        let mut out = String::new();
        write(self, 0, &mut out);
        out
    }

    /// Returns a scalar as it appears inside a longer text; `None` for lists and mappings.
    pub fn plain_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::List(_) | Self::Map(_) => None,
            scalar => Some(scalar.to_yaml()),
        }
    }
}

/// Returns a value as YAML on one line.
pub fn inline(value: &Value) -> String {
    match value {
        Value::List(items) => format!("[{}]", items.iter().map(|item| inline(&item.value)).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, node)| format!("{key}: {}", inline(&node.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_yaml(),
    }
}

/// Writes a value whose first line is already indented.
fn write(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Map(map) if !map.is_empty() => entries(map, indent, out),
        Value::List(items) if !items.is_empty() => list(items, indent, out),
        Value::Map(_) => out.push_str("{}"),
        Value::List(_) => out.push_str("[]"),
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::Float(value) if value.is_nan() => out.push_str(".nan"),
        Value::Float(value) if value.is_infinite() => out.push_str(if *value > 0.0 { ".inf" } else { "-.inf" }),
        Value::Float(value) => out.push_str(&format!("{value:?}")),
        Value::Text(text) => out.push_str(&quoted(text)),
    }
}

fn entries(map: &Map, indent: usize, out: &mut String) {
    for (index, (key, node)) in map.iter().enumerate() {
        if index > 0 {
            new_line(indent, out);
        }
        out.push_str(&quoted(key));
        out.push(':');
        match &node.value {
            Value::Map(map) if !map.is_empty() => {
                new_line(indent + 2, out);
                entries(map, indent + 2, out);
            }
            Value::List(items) if !items.is_empty() => {
                new_line(indent, out);
                list(items, indent, out);
            }
            value => {
                out.push(' ');
                write(value, indent, out);
            }
        }
    }
}

fn list(items: &[Node], indent: usize, out: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            new_line(indent, out);
        }
        out.push_str("- ");
        write(&item.value, indent + 2, out);
    }
}

fn new_line(indent: usize, out: &mut String) {
    out.push('\n');
    out.push_str(&" ".repeat(indent));
}

fn quoted(text: &str) -> String {
    if text.chars().any(char::is_control) {
        let escape = |c: char| match c {
            '"' | '\\' => format!("\\{c}"),
            '\n' => "\\n".into(),
            '\t' => "\\t".into(),
            c if c.is_control() => format!("\\u{:04x}", c as u32),
            c => c.to_string(),
        };
        return format!("\"{}\"", text.chars().map(escape).collect::<String>());
    }
    if is_plain(text) { text.to_string() } else { format!("'{}'", text.replace('\'', "''")) }
}

/// True if every YAML reader reads the unquoted text as the same string.
fn is_plain(text: &str) -> bool {
    let starts_well = !text.starts_with(|c: char| "?:,[]{}#&*!|>'\"%@`".contains(c)) && text != "-" && !text.starts_with("- ");
    let no_number = text.parse::<f64>().is_err() && !text.starts_with("0o") && !matches!(text, "y" | "Y" | "n" | "N");
    let no_mark = !text.contains(": ") && !text.ends_with(':') && !text.contains(" #") && !matches!(text, "---" | "...");
    let is_text = matches!(scalar::read_yaml(text), Ok(Value::Text(_)));
    text.trim() == text && starts_well && no_number && no_mark && is_text
}
