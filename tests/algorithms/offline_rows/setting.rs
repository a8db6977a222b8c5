//! The tokenizer, the templates and the options of a case.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use burnish::data::Tokenizer;
use burnish::data::examples::{ChatColumns, Overlong};
use serde_json::Value;

use crate::cases::golden_file;

pub(super) const DEFAULT_LENGTH: usize = 1024;

/// The cases of a section of data.json.
pub(super) struct Setting {
    all: Value,
    folder: PathBuf,
    made: RefCell<HashMap<String, Tokenizer>>,
}

impl Setting {
    pub(super) fn new() -> Self {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/offline/pythia");
        let theirs = std::env::var_os("BURNISH_GOLDENS").map(|folder| Path::new(&folder).join("offline/pythia"));
        let folder = theirs.filter(|folder| folder.join("tokenizer.json").is_file()).unwrap_or(own);
        Self { all: golden_file("offline/data.json"), folder, made: RefCell::default() }
    }

    /// The tokenizer with a template by its name; null = no template.
    pub(super) fn tokenizer(&self, template: &Value) -> Tokenizer {
        let source = template.as_str().map(|name| self.all["templates"][name].as_str().unwrap());
        let made = || Tokenizer::load_with_template(&self.folder, source).unwrap();
        self.made.borrow_mut().entry(template.to_string()).or_insert_with(made).clone()
    }

    /// Calls `check` with the rows and each result of every case of a section.
    pub(super) fn each(&self, section: &str, mut check: impl FnMut(&[Value], &Value, &str)) {
        let cases = self.all[section].as_array().unwrap();
        assert!(!cases.is_empty());
        for (i, case) in cases.iter().enumerate() {
            for result in case["results"].as_array().unwrap() {
                let rows = case["rows"].as_array().unwrap();
                let name = format!("{section} {i} {} {}", result["options"], result.get("row").unwrap_or(&Value::Null));
                match result.get("row").and_then(Value::as_u64) {
                    Some(row) => check(&rows[row as usize..=row as usize], result, &name),
                    None => check(rows, result, &name),
                }
            }
        }
    }
}

/// A file with one row. The folder must outlive its use.
pub(super) fn file(folder: &Path, row: &Value) -> Vec<PathBuf> {
    let path = folder.join("row.jsonl");
    fs::write(&path, format!("{row}\n")).unwrap();
    vec![path]
}

pub(super) fn chat() -> ChatColumns {
    ChatColumns { tools_key: "tools".into(), chat_template_kwargs_key: "chat_template_kwargs".into(), enable_thinking_key: None }
}

/// The token limit and the side of the cut, from TRL's options.
pub(super) fn cut(options: &Value) -> (usize, Overlong) {
    let max = match options.get("max_length") {
        None => DEFAULT_LENGTH,
        Some(max) => max.as_u64().map_or(usize::MAX, |max| max as usize),
    };
    (max, if options["truncation_mode"] == "keep_end" { Overlong::Left } else { Overlong::Right })
}

pub(super) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap_or_else(|| panic!("{value}")).iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// True for each position that counts in a mask of 0 and 1.
pub(super) fn mask(value: &Value) -> Vec<bool> {
    ids(value).into_iter().map(|bit| bit == 1).collect()
}

/// True for each label other than -100.
pub(super) fn labelled(labels: &Value) -> Vec<bool> {
    labels.as_array().unwrap().iter().map(|label| label.as_i64() != Some(-100)).collect()
}
