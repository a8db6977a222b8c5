//! A task that a tiny model learns in minutes: "37+58=" is to be continued with "95".

use std::path::Path;

use anyhow::{Result, bail};

use super::char_tokenizer::write_char_tokenizer;
use super::{PrepareArgs, PrepareReport, Problem, write_parquet};
use crate::data::sampler::{choose, keyed_rng};

pub const DATA_SOURCE: &str = "burnish/arithmetic";

#[derive(Clone, Debug, PartialEq)]
pub struct ArithmeticOptions {
    pub seed: u64,
    /// Rows of train.parquet.
    pub train: usize,
    /// Rows of test.parquet; none of them is a training row.
    pub test: usize,
    /// Both operands are 0..=max_operand.
    pub max_operand: u32,
    /// Characters of "+-*".
    pub ops: String,
}

impl ArithmeticOptions {
    /// `seed=0 train=4096 test=512 max_operand=99 ops=+-` unless set otherwise.
    pub fn from_settings(args: &PrepareArgs) -> Result<Self> {
        args.only_settings(&["seed", "train", "test", "max_operand", "ops"])?;
        Ok(Self {
            seed: args.setting("seed", 0)?,
            train: args.setting("train", 4096)?,
            test: args.setting("test", 512)?,
            max_operand: args.setting("max_operand", 99)?,
            ops: args.setting("ops", "+-".into())?,
        })
    }
}

/// Writes `output`/{train,test}.parquet and the matching tokenizer folder `output`/tokenizer. All problems differ; the same
/// options give the same files.
pub fn arithmetic(output: &Path, options: &ArithmeticOptions) -> Result<PrepareReport> {
    let mut ops: Vec<char> = options.ops.chars().collect();
    ops.sort_unstable();
    ops.dedup();
    if ops.is_empty() || ops.iter().any(|op| !"+-*".contains(*op)) {
        bail!("ops={}: the operations are characters of \"+-*\"", options.ops);
    }
    if options.train == 0 || options.test == 0 {
        bail!("train={} test={}: both must have rows", options.train, options.test);
    }
    let operands = u64::from(options.max_operand) + 1;
    let existing = operands.saturating_mul(operands).saturating_mul(ops.len() as u64);
    let wanted = options.train + options.test;
    if wanted as u64 > existing {
        bail!("train={} and test={} need {wanted} problems, but only {existing} exist", options.train, options.test);
    }

    let numbers = choose(existing, wanted, &mut keyed_rng("arithmetic", options.seed, 0));
    let problem = |number: &u64| {
        let (pair, op) = (number / ops.len() as u64, ops[(number % ops.len() as u64) as usize]);
        solve(pair / operands, op, pair % operands)
    };
    let problems: Vec<Problem> = numbers.iter().map(problem).collect();
    let (test, train) = problems.split_at(options.test);
    let mut files = Vec::new();
    for (split, problems) in [("train", train), ("test", test)] {
        let path = output.join(format!("{split}.parquet"));
        write_parquet(&path, DATA_SOURCE, "math", split, problems)?;
        files.push((path, problems.len()));
    }
    write_char_tokenizer(&output.join("tokenizer"))?;
    Ok(PrepareReport { files })
}

fn solve(left: u64, op: char, right: u64) -> Problem {
    let (a, b) = (i128::from(left), i128::from(right));
    let result = match op {
        '+' => a + b,
        '-' => a - b,
        _ => a * b,
    };
    let (question, answer) = (format!("{left}{op}{right}="), result.to_string());
    Problem { prompt: question.clone(), ground_truth: answer.clone(), question, answer }
}
