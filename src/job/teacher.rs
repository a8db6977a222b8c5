//! Checks that a teacher has the tokens of the student.

use anyhow::{Result, bail};

use super::second_model::SecondModel;
use burnish_data::Tokenizer;

/// Checks that a teacher has exactly the tokens of the run. Its vocabulary may be padded to another size than the student's if
/// its folder has a tokenizer. `vocabularies`: the sizes of the teacher's and of the student's.
///
/// # Errors
/// If tokens differ, or a tokenizer cannot be read.
pub(crate) fn check_tokens(teacher: SecondModel, tokenizer: &Tokenizer, vocabularies: (usize, usize)) -> Result<()> {
    let of_teacher = teacher.padded(tokenizer, vocabularies)?;
    if let Some(difference) = of_teacher.and_then(|own| own.unknown_to(tokenizer)) {
        bail!(
            "{}={}: its tokenizer differs from the run's: in the teacher's, {difference}; a teacher has the same tokens",
            teacher.key,
            teacher.folder.display()
        );
    }
    Ok(())
}
