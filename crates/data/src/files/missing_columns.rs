//! The error for missing columns of a data file: lists the columns, and how to provide the missing ones.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Error, anyhow};

use burnish_util::suggest::did_you_mean;

/// Missing columns of a file or of one of its rows.
#[derive(Debug)]
pub(crate) struct MissingColumns {
    file: PathBuf,
    missing: Vec<String>,
    columns: Vec<String>,
}

impl MissingColumns {
    pub(crate) fn new<'a>(file: &Path, missing: &[&str], columns: impl Iterator<Item = &'a str>) -> Self {
        let missing = missing.iter().map(|name| (*name).to_owned()).collect();
        Self { file: file.to_owned(), missing, columns: columns.map(str::to_owned).collect() }
    }

    fn existing(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.columns.iter().any(|column| column == name))
    }

    /// Returns a way to provide the column that `setting` names.
    fn remedy(&self, setting: &str, settings: &[(&str, &str)]) -> Option<String> {
        let alike = ALIKE.iter().find(|(known, _)| *known == setting);
        if let Some(name) = alike.and_then(|(_, names)| self.existing(names)) {
            return Some(format!("set {setting}={name}"));
        }
        let takes_conversations = settings.iter().any(|(known, _)| *known == MESSAGES_KEY);
        match setting {
            "data.response_key" if takes_conversations => {
                Some(format!("set {MESSAGES_KEY}={}, which reads whole conversations", self.existing(CONVERSATIONS)?))
            }
            "data.reward_fn_key" | "data.data_source_key" => Some(
                "the name of the rule that scores the row, such as openai/gsm8k; not needed with reward_model.reward_functions=[NAME] \
                 or a function of custom_reward_function.path that does not read it; null = rows have none"
                    .to_owned(),
            ),
            GROUND_TRUTH => Some(match self.existing(GROUND_TRUTHS) {
                Some(name) => format!("set {LABEL_KEY}={name}, the column of the correct answers"),
                None => format!(
                    "{{\"ground_truth\": …}}, the correct answer; set {LABEL_KEY} if another column has it. A function of \
                     custom_reward_function.path that does not read it needs none"
                ),
            }),
            _ => None,
        }
    }
}

/// Setting of the column of ground truths.
pub(crate) const LABEL_KEY: &str = "data.label_key";

/// Stands for the column of structs with ground truths in the settings of [`with_remedies`].
pub(crate) const GROUND_TRUTH: &str = "reward_model";

/// Setting that reads a conversation instead of a prompt and a response.
pub(crate) const MESSAGES_KEY: &str = "data.messages_key";

const CONVERSATIONS: &[&str] = &["messages", "conversations", "conversation", "chat"];

/// Common column names in data sets, for each setting.
const ALIKE: &[(&str, &[&str])] = &[
    ("data.prompt_key", &["prompt", "question", "problem", "query", "instruction", "input", "messages", "text"]),
    ("data.response_key", &["response", "answer", "completion", "output", "responses", "solution"]),
    (MESSAGES_KEY, CONVERSATIONS),
    (LABEL_KEY, GROUND_TRUTHS),
];

const GROUND_TRUTHS: &[&str] = &["ground_truth", "answer", "solution", "label", "labels", "target", "final_answer"];

/// Adds a line per missing column to a `MissingColumns` error: the setting that names it, or how to compute it from another
/// column. `settings`: each setting with its column. Other errors stay unchanged.
pub fn with_remedies(error: Error, settings: &[(&str, &str)]) -> Error {
    let Some(lacking) = error.downcast_ref::<MissingColumns>() else { return error };
    let remedies = settings.iter().filter(|(_, column)| lacking.missing.iter().any(|missing| missing == column));
    let lines: Vec<String> = remedies
        .map(|(setting, column)| {
            let remedy = lacking.remedy(setting, settings);
            format!("\n  {column}: {}", remedy.unwrap_or_else(|| format!("set {setting} to the right column")))
        })
        .collect();
    anyhow!("{lacking}{}", lines.concat())
}

impl fmt::Display for MissingColumns {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let quoted: Vec<String> = self.missing.iter().map(|name| format!("\"{name}\"")).collect();
        let (noun, hint) = match self.missing.as_slice() {
            [one] => ("column", did_you_mean(one, self.columns.iter().map(String::as_str))),
            _ => ("columns", String::new()),
        };
        let (file, missing, columns) = (self.file.display(), quoted.join(", "), self.columns.join(", "));
        write!(f, "{file}: no {noun} {missing}; the columns are {columns}.{hint}")
    }
}

impl std::error::Error for MissingColumns {}
