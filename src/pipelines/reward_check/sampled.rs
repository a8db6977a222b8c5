//! Responses of a model to the examined rows, generated as `trainer generate` does.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::reading::{Files, MARKS, spread};
use crate::pipelines::generate::Generation;
use burnish_config::schema::{EvalDataConfig, GenerationConfig};
use burnish_config::{ConfigError, Loaded};
use burnish_tracking::Progress;
use burnish_util::fs::write_atomic;

/// Loads the settings of the generation, for a file of rows and a file for the responses.
pub(crate) type LoadGeneration = Box<dyn Fn(&Path, &Path) -> Result<Loaded<GenerationConfig>, ConfigError>>;

/// A folder of intermediate files, which is removed at the end.
pub(super) struct SampledFolder(PathBuf);

impl Drop for SampledFolder {
    fn drop(&mut self) {
        // A folder that is left over does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Generates responses to rows that are spread over the files. Returns the file of rows with responses, and the number of rows in
/// the files.
///
/// # Errors
/// The errors of `trainer generate`.
pub(super) fn sampled(data: &EvalDataConfig, load: &LoadGeneration) -> Result<(SampledFolder, Files)> {
    let (rows, all) = spread(&data.path.paths())?;
    let folder = SampledFolder(std::env::temp_dir().join(format!("burnish-reward-check-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).with_context(|| folder.0.display().to_string())?;
    let (prompts, responses) = (folder.0.join("prompts.jsonl"), folder.0.join("responses.parquet"));
    let mut text = String::new();
    for mut row in rows {
        row.values.retain(|name, _| *name != data.response_key && name != "responses" && !MARKS.contains(&name.as_str()));
        text += &format!("{}\n", Value::Object(row.values));
    }
    write_atomic(&prompts, text.as_bytes())?;
    let loaded = load(&prompts, &responses)?;
    Generation::new(loaded, Progress::hidden())?.run()?;
    Ok((folder, Files { paths: vec![responses], responses: "responses".to_owned(), all: Some(all) }))
}
