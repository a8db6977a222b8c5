//! The parquet schema of RL data sets: the one of verl's own preparation scripts.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Field;

use crate::data::table::write_batches;

/// One problem: `prompt` is the user's message, and the scorer compares with `ground_truth`; `question` and `answer` are the
/// source's own texts, kept under `extra_info`.
#[derive(Clone, Debug, PartialEq)]
pub struct MathProblem {
    pub prompt: String,
    pub ground_truth: String,
    pub question: String,
    pub answer: String,
}

/// Writes `problems` with the columns data_source, prompt, ability, reward_model and extra_info {split, index, answer,
/// question}. The file appears whole or not at all.
pub fn write_parquet(path: &Path, data_source: &str, ability: &str, split: &str, problems: &[MathProblem]) -> Result<()> {
    let count = problems.len();
    let constant = |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values((0..count).map(|_| text))) };
    let text = |f: fn(&MathProblem) -> &String| -> ArrayRef { Arc::new(StringArray::from_iter_values(problems.iter().map(f))) };
    let indices: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count as i64));

    let messages = structure(vec![("role", constant("user")), ("content", text(|p| &p.prompt))]);
    let element = Arc::new(Field::new("element", arrow::array::Array::data_type(&messages).clone(), true));
    let prompt = ListArray::try_new(element, OffsetBuffer::from_lengths(std::iter::repeat_n(1, count)), messages, None)?;
    let reward_model = structure(vec![("style", constant("rule")), ("ground_truth", text(|p| &p.ground_truth))]);
    let extra_info = structure(vec![
        ("split", constant(split)),
        ("index", indices),
        ("answer", text(|p| &p.answer)),
        ("question", text(|p| &p.question)),
    ]);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("data_source", constant(data_source), true),
        ("prompt", Arc::new(prompt) as ArrayRef, true),
        ("ability", constant(ability), true),
        ("reward_model", reward_model, true),
        ("extra_info", extra_info, true),
    ])?;
    write_batches(path, batch.schema(), [Ok(batch)])
}

fn structure(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let field = |(name, array): (&str, ArrayRef)| {
        (Arc::new(Field::new(name, arrow::array::Array::data_type(&array).clone(), true)), array)
    };
    Arc::new(StructArray::from(columns.into_iter().map(field).collect::<Vec<_>>()))
}
