//! samples.jsonl: responses, token by token, for `trainer report`.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_util::jsonl::StepLog;

/// Name of the file in the run's folder.
pub const SAMPLES: &str = "samples.jsonl";

/// A response with its score, advantages and log-probabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub step: u64,
    /// `train` or `val`.
    pub kind: String,
    /// Position of the prompt's row in its files, from 0; records of old versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    pub prompt: String,
    pub response: String,
    /// Score; `None` if every reward function abstained.
    #[serde(with = "burnish_util::json_number")]
    pub score: Option<f64>,
    /// Mean advantage of the trained tokens; `None` in validation.
    #[serde(with = "burnish_util::json_number")]
    pub advantage: Option<f64>,
    pub ground_truth: Value,
    pub data_source: String,
    /// Score of each reward function, if there are several: a number or null ([`burnish_util::json_number`]).
    pub components: Map<String, Value>,
    /// Reason why the response ended: `stop` or `length`.
    pub finish: String,
    /// Reason why dynamic sampling discarded the group of the response; `None` for a response that was not discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<String>,
    /// Numbers of the updates of the step that learned from the response, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<usize>,
    /// Tokens of the response, each as its text.
    pub tokens: Vec<String>,
    /// log π of each token.
    #[serde(with = "burnish_util::json_number")]
    pub log_probs: Vec<f32>,
    /// Advantage of each token.
    #[serde(with = "burnish_util::json_number")]
    pub advantages: Option<Vec<f32>>,
    /// Fields of a multi-turn conversation; `None` for a response of one turn.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationSample>,
}

/// A multi-turn conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationSample {
    /// All messages, the messages of the prompt first.
    pub messages: Vec<Value>,
    /// Number of the prompt's messages.
    #[serde(rename = "asked")]
    pub prompt_messages: usize,
    /// Reason why the conversation ended, such as `answer`.
    pub end: String,
    pub num_turns: usize,
    /// For each token of the response, 1 if the model sampled it, 0 if it comes from a tool, a user or an environment.
    pub sampled: Vec<u8>,
}

/// The open samples file of an active run.
#[derive(Debug)]
pub(crate) struct SamplesFile(StepLog);

impl SamplesFile {
    /// Opens the file; see [`StepLog::open_own`].
    ///
    /// # Errors
    /// If the file cannot be opened or written.
    pub(crate) fn open(dir: &Path, resumed_step: Option<u64>) -> Result<Self> {
        Ok(Self(StepLog::open_own(&dir.join(SAMPLES), resumed_step)?))
    }

    /// Adds the samples of a step.
    ///
    /// # Errors
    /// If the file cannot be written. All samples are kept for the next call.
    pub(crate) fn add(&mut self, samples: &[Sample]) -> Result<()> {
        let lines: Vec<String> = samples.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        self.0.append_all(&lines)
    }

    /// Writes the kept samples.
    ///
    /// # Errors
    /// The errors of [`Self::add`].
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Read;
    use std::process::Command;

    use super::*;

    /// A pipe fails each write while it has no reader, like a full disk.
    #[test]
    fn samples_that_cannot_be_written_are_all_written_later() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // A pipe that is opened for both does not wait for the other end.
        let reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let mut file = SamplesFile(StepLog::open(&pipe, None).unwrap());
        drop(reader);
        let sample = |response: &str| -> Sample {
            serde_json::from_value(serde_json::json!({
                "step": 1, "kind": "train", "prompt": "", "response": response, "score": null, "advantage": null, "ground_truth": null,
                "data_source": "", "components": {}, "finish": "stop", "tokens": [], "log_probs": [], "advantages": null,
            }))
            .unwrap()
        };
        assert!(file.add(&["a", "b", "c"].map(sample)).is_err());
        let mut reader = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        file.flush().unwrap();
        let mut bytes = [0; 4096];
        let read = reader.read(&mut bytes).unwrap();
        let lines = String::from_utf8_lossy(&bytes[..read]).into_owned();
        let responses: Vec<String> = lines.lines().map(|line| serde_json::from_str::<Sample>(line).unwrap().response).collect();
        assert_eq!(responses, ["a", "b", "c"]);
    }
}
