//! Supervised rows in the tokens of two models, a student and a teacher with another tokenizer.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::answer_text::{AnswerTokens, TrainedRun, shared};
use super::options::SftOptions;
use super::read;
use super::tokens::SftTokens;
use crate::examples::document::Document;
use crate::examples::overlong::CUT;
use crate::examples::place::RowPlace;
use crate::examples::tally::{ReadRows, RowOutcome};
use crate::files::media;
use crate::tokens::tokenizer::Tokenizer;

const OTHER_ANSWER: &str = "have an answer that the teacher's chat template writes as another text than the student's";
const NOT_WEIGHTED: &str = "have weights other than 0 and 1";

/// A row in the tokens of two models. Both are rendered with their own chat templates.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoTexts {
    /// The student's, cut to `max_length`.
    pub student: Document,
    /// The teacher's, whole.
    pub teacher: Document,
    /// The answers, each in the student's tokens (positions before the cut) and in the teacher's.
    pub answers: Vec<[AnswerTokens; 2]>,
    /// The number of tokens that are cut off before the student's.
    pub cut_before: usize,
}

/// Reads `files` in order for a student and a teacher, and warns about skipped rows.
///
/// # Errors
/// If a file or row cannot be read (with its place), or more than half of the rows are skipped.
pub fn load_two_texts(
    files: &[PathBuf],
    student: &Tokenizer,
    teacher: &Tokenizer,
    options: &SftOptions,
) -> Result<Vec<TwoTexts>> {
    read_two_texts(files, student, teacher, options)?.checked("examples")
}

/// Reads `files` in order, and counts skipped rows.
///
/// # Errors
/// If a file or row cannot be read, with its place.
pub fn read_two_texts(
    files: &[PathBuf],
    student: &Tokenizer,
    teacher: &Tokenizer,
    options: &SftOptions,
) -> Result<ReadRows<TwoTexts>> {
    let rows = options.reading.apply(read::open(files, options)?);
    // Turns are found in the whole conversation of each, and the student's is cut afterwards.
    let (of, whole) = (options.clone(), SftOptions { max_length: usize::MAX, ..options.clone() });
    let (student, teacher) = (student.clone(), teacher.clone());
    let (outcomes, malformed) = rows.each_or(options.reading.on_malformed, move |_, row| {
        media::refuse(&row)?;
        let own = read::tokens(&row, &student, &whole)?;
        let other = read::tokens(&row, &teacher, &whole).context("in the teacher's tokens (teacher.path)")?;
        let outcome = |(SftTokens { document: own, mut notes }, SftTokens { document: other, .. }): (SftTokens, SftTokens)| {
            let is_longer = own.ids.len() > of.max_length;
            let result = match answers([&own, &other], [&student, &teacher])? {
                Err(reason) => Err(reason),
                Ok(answers) => {
                    let cut_before = of.kept(own.ids.len()).start;
                    read::cut(own, &of)?.map(|student| TwoTexts { student, teacher: other, answers, cut_before })
                }
            };
            notes.extend((is_longer && result.is_ok()).then_some(CUT));
            Ok(RowOutcome { result, notes, row: RowPlace::for_row(&row) })
        };
        own.into_iter().zip(other).map(outcome).collect::<Result<Vec<_>>>()
    })?;
    let outcomes: Vec<RowOutcome<TwoTexts>> = outcomes.into_iter().flatten().collect();
    Ok(ReadRows::from_outcomes(outcomes, malformed))
}

/// Returns the answers of a row in the tokens of both. The inner error is the reason for skipping the row.
fn answers(documents: [&Document; 2], tokenizers: [&Tokenizer; 2]) -> Result<Result<Vec<[AnswerTokens; 2]>, &'static str>> {
    if documents[0].weights.iter().any(|weight| *weight != 0.0 && *weight != 1.0) {
        return Ok(Err(NOT_WEIGHTED));
    }
    let own = TrainedRun::all(documents[0], tokenizers[0])?;
    let other = TrainedRun::all(documents[1], tokenizers[1])?;
    if own.len() != other.len() {
        return Ok(Err(OTHER_ANSWER));
    }
    let all: Option<Vec<_>> = own.iter().zip(&other).map(|(own, other)| shared(own, other)).collect();
    Ok(all.ok_or(OTHER_ANSWER))
}
