//! The configurations in a data set's README.md: `configs:` of the YAML at its beginning.

use serde_json::Value;

/// A configuration of a data set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CardConfig {
    pub name: String,
    pub is_default: bool,
    /// Splits with the patterns of their files; empty if the card has only a folder.
    pub splits: Vec<(String, Vec<String>)>,
    /// Folder of the files.
    pub folder: Option<String>,
}

/// Reads the configurations. Returns an empty list without YAML or without `configs:`.
///
/// # Errors
/// If the YAML is invalid.
pub(crate) fn configs(readme: &str) -> Result<Vec<CardConfig>, String> {
    let Some(body) = readme.trim_start_matches('\u{feff}').strip_prefix("---") else { return Ok(vec![]) };
    let Some((yaml, _)) = body.split_once("\n---") else { return Ok(vec![]) };
    let card: Value = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
    let configs = card.get("configs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(configs.iter().filter_map(config).collect())
}

fn config(value: &Value) -> Option<CardConfig> {
    let name = value.get("config_name").and_then(word).unwrap_or_else(|| "default".to_owned());
    let is_default = name == "default" || value.get("default").and_then(Value::as_bool) == Some(true);
    let folder = value.get("data_dir").and_then(word);
    let train = |patterns| vec![("train".to_owned(), patterns)];
    let splits = match value.get("data_files") {
        Some(Value::Object(splits)) => splits.iter().map(|(split, files)| (split.clone(), words(files))).collect(),
        Some(Value::Array(items)) if items.iter().all(Value::is_object) => {
            let split = |item: &Value| Some((item.get("split").and_then(word)?, words(item.get("path")?)));
            items.iter().filter_map(split).collect()
        }
        Some(files) => train(words(files)),
        None => vec![],
    };
    let splits: Vec<(String, Vec<String>)> = splits;
    (!splits.is_empty() || folder.is_some()).then_some(CardConfig { name, is_default, splits, folder })
}

/// Returns the text of a name, which YAML may read as a number.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(word).collect(),
        one => word(one).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_read_in_every_form_of_the_hub() {
        let readme = "---\nlicense: mit\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n  \
                      - split: test\n    path: [main/test-*, more/*]\n- config_name: 2024\n  default: true\n  data_files: x.jsonl\n\
                      - config_name: folder\n  data_dir: raw\n- config_name: none\n- config_name: map\n  data_files:\n    dev: d.json\n\
                      ---\n# Text\n";
        let read = configs(readme).unwrap();
        let shown: Vec<String> = read
            .iter()
            .map(|config| format!("{} {} {:?} {:?}", config.name, config.is_default, config.splits, config.folder))
            .collect();
        assert_eq!(
            shown,
            [
                r#"main false [("train", ["main/train-*"]), ("test", ["main/test-*", "more/*"])] None"#,
                r#"2024 true [("train", ["x.jsonl"])] None"#,
                r#"folder false [] Some("raw")"#,
                r#"map false [("dev", ["d.json"])] None"#,
            ]
        );
        for none in ["", "# Text", "---\nlicense: mit\n---\n", "---\nno end"] {
            assert_eq!(configs(none).unwrap(), []);
        }
        assert!(configs("---\na: [\n---\n").is_err());
    }
}
