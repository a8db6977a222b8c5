//! The tokens of a teacher, which must be those of the student.

use anyhow::{Context, Result, bail, ensure};

use crate::config::schema::Location;
use crate::data::Tokenizer;
use crate::util::foreign;

/// Checks that a teacher has the tokens of the run. Its vocabulary may be padded to another size than the student's if its folder has
/// a tokenizer, which then must be that of the run. `key`: the setting that names the teacher; `student`: its name in messages;
/// `vocabularies`: the sizes of the student's and of the teacher's.
///
/// # Errors
/// Other tokens; a tokenizer that cannot be read.
pub fn check_tokens(
    key: &str,
    path: &Location,
    tokenizer: &Tokenizer,
    student: &str,
    vocabularies: (usize, usize),
) -> Result<()> {
    let (own, theirs) = vocabularies;
    if !foreign::is_there(&path.as_path().join("tokenizer.json"))? {
        ensure!(
            own == theirs,
            "{key}={path}: its vocabulary has {theirs} tokens, the {student}'s {own}, and no tokenizer.json in its folder shows that they are the same tokens but for padding"
        );
        return Ok(());
    }
    let of_teacher = Tokenizer::load(path.as_path()).with_context(|| key.to_owned())?;
    let reversed = || of_teacher.unknown_to(tokenizer).map(|difference| format!("of its own, {difference}"));
    if let Some(difference) = tokenizer.unknown_to(&of_teacher).or_else(reversed) {
        bail!("{key}={path}: its tokenizer differs from that of the run: {difference}; a teacher has the same tokens");
    }
    Ok(())
}
