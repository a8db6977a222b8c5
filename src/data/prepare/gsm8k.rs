//! GSM8K (Cobbe et al. 2021), in exactly the form of verl's `examples/data_preprocess/gsm8k.py`.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::Regex;

use super::{MathProblem, PrepareReport, write_parquet};
use crate::data::rows::{Row, read_rows};

pub const DATA_SOURCE: &str = "openai/gsm8k";
const INSTRUCTION: &str = "Let's think step by step and output the final answer after \"####\".";

/// Turns `input`/{train,test}.jsonl (`{"question", "answer"}` per line) into `output`/{train,test}.parquet.
pub fn gsm8k(input: &Path, output: &Path) -> Result<PrepareReport> {
    let mut files = Vec::new();
    for split in ["train", "test"] {
        let rows = read_rows(&[input.join(format!("{split}.jsonl"))], &["question", "answer"], &[])?;
        let problems = rows.iter().map(problem).collect::<Result<Vec<_>>>()?;
        let path = output.join(format!("{split}.parquet"));
        write_parquet(&path, DATA_SOURCE, "math", split, &problems)?;
        files.push((path, problems.len()));
    }
    Ok(PrepareReport { files })
}

fn problem(row: &Row) -> Result<MathProblem> {
    static FINAL: LazyLock<Regex> = LazyLock::new(|| Regex::new("#### (-?[0-9.,]+)").expect("a constant pattern"));
    let text = |name| row.column(name)?.as_str().with_context(|| format!("{}: \"{name}\" must be text", row.place()));
    let (question, answer) = (text("question")?, text("answer")?);
    let number = FINAL.captures(answer).with_context(|| format!("{}: the answer has no \"#### NUMBER\"", row.place()))?;
    Ok(MathProblem {
        prompt: format!("{question} {INSTRUCTION}"),
        ground_truth: number[1].replace(',', ""),
        question: question.to_owned(),
        answer: answer.to_owned(),
    })
}
