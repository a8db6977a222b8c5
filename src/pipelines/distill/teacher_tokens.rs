//! The tokenizer of a teacher with other tokens.

use anyhow::{Context, Result};

use burnish_config::DistillConfig;
use burnish_data::Tokenizer;

/// The setting that names the teacher.
pub(super) const KEY: &str = "teacher.path";

/// Returns the teacher's own tokenizer, with the date of the student's chat template.
///
/// # Errors
/// If the teacher's folder has none, or it cannot be read.
pub(super) fn tokenizer(config: &DistillConfig, student: &Tokenizer) -> Result<Tokenizer> {
    let path = config.teacher.path.as_ref().with_context(|| format!("{KEY} is unset"))?;
    let own = Tokenizer::load(path.as_path()).and_then(|own| own.with_ends_of(path.as_path())).context(KEY)?;
    Ok(own.with_date(student.date().clone()))
}
