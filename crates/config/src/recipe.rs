//! The YAML recipe that a command of another library is converted to, with comments at values.

use burnish_hydra::Value;
use indexmap::IndexMap;

/// A recipe before it is written.
pub struct Recipe<'a> {
    /// The sentences at the top, which name the source of the recipe.
    pub about: Vec<String>,
    /// Titled lists below these sentences, as comments; empty lists are left out.
    pub lists: Vec<(&'static str, Vec<String>)>,
    /// The built-in file that the settings override.
    pub preset: &'a str,
    pub settings: Section,
}

/// The settings under one key, in order.
#[derive(Default)]
pub struct Section(IndexMap<String, Entry>);

/// A setting, or several settings below one key.
pub enum Entry {
    Section(Section),
    Items(Vec<Entry>),
    Value {
        value: Value,
        /// The comment after the value; may be empty.
        comment: String,
    },
}

impl Recipe<'_> {
    /// Returns the text of the file.
    pub fn write(&self) -> String {
        let mut lines: Vec<String> = self.about.iter().map(|line| format!("# {line}")).collect();
        for (title, list) in self.lists.iter().filter(|(_, list)| !list.is_empty()) {
            lines.extend(["#".to_string(), format!("# {title}")]);
            lines.extend(list.iter().map(|line| format!("#   {}", line.replace('\n', " "))));
        }
        lines.extend(["defaults:".to_string(), format!("  - /{}", self.preset), "  - _self_".to_string()]);
        for (name, entry) in &self.settings.0 {
            lines.push(String::new());
            lines.extend(entry.below(name));
        }
        lines.join("\n") + "\n"
    }
}

/// Returns the lines with a number in front of each.
pub fn numbered(lines: impl Iterator<Item = String>) -> Vec<String> {
    lines.enumerate().map(|(index, line)| format!("{}. {line}", index + 1)).collect()
}

impl Section {
    /// Puts an entry at a dotted key, after the existing entries.
    pub fn put(&mut self, key: &str, entry: Entry) {
        match key.split_once('.') {
            None => _ = self.0.insert(key.to_string(), entry),
            Some((first, rest)) => {
                let section = self.0.entry(first.to_string()).or_insert_with(|| Entry::Section(Self::default()));
                if let Entry::Section(section) = section {
                    section.put(rest, entry);
                }
            }
        }
    }
}

impl FromIterator<(String, Entry)> for Section {
    fn from_iter<T: IntoIterator<Item = (String, Entry)>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Entry {
    /// Returns a value that the user must set: an environment variable named after the key, without which a run is refused. `???`
    /// does not work, because in OmegaConf it keeps the value of the file below. `default`: the built-in value; if it is not a
    /// text, the text of the variable is parsed.
    pub fn to_be_set(key: &str, default: Option<&Value>, message: &str) -> Self {
        let variable = format!("${{oc.env:{}}}", key.replace('.', "_").to_uppercase());
        let text = match default {
            Some(Value::Text(_)) | None => variable,
            Some(_) => format!("${{oc.decode:{variable}}}"),
        };
        Self::Value { value: Value::Text(text), comment: format!("set me: {message}") }
    }

    /// Returns the lines of this entry under its name.
    fn below(&self, name: &str) -> Vec<String> {
        let (head, body) = self.lines();
        let first = format!("{}:{head}", Value::Text(name.to_string()).to_yaml());
        std::iter::once(first).chain(body.into_iter().map(|line| format!("  {line}"))).collect()
    }

    /// Returns the text after the key, and the lines below the key.
    fn lines(&self) -> (String, Vec<String>) {
        match self {
            Self::Section(Section(entries)) if entries.is_empty() => (" {}".into(), vec![]),
            Self::Section(Section(entries)) => {
                (String::new(), entries.iter().flat_map(|(name, entry)| entry.below(name)).collect())
            }
            Self::Items(items) => (String::new(), items.iter().flat_map(Self::as_item).collect()),
            Self::Value { value, comment } => {
                let comment = if comment.is_empty() { String::new() } else { format!("  # {}", comment.replace('\n', " ")) };
                let yaml = value.to_yaml();
                match value {
                    Value::List(items) if !items.is_empty() => (comment, yaml.lines().map(str::to_string).collect()),
                    Value::Map(entries) if !entries.is_empty() => (comment, yaml.lines().map(str::to_string).collect()),
                    _ => (format!(" {yaml}{comment}"), vec![]),
                }
            }
        }
    }

    /// Returns the lines of this entry as an item of a list.
    fn as_item(&self) -> Vec<String> {
        let (head, body) = self.lines();
        if body.is_empty() {
            return vec![format!("-{head}")];
        }
        let mark = |(index, line): (usize, String)| format!("{} {line}", if index == 0 { "-" } else { " " });
        body.into_iter().enumerate().map(mark).collect()
    }
}
