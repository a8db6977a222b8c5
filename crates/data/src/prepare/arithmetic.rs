//! A task that a tiny model learns in minutes: continue "37+58=" with "95".
//!
//! The demonstrations (`extra_info.answer`) imitate a careless pupil, who mostly forgets to carry: "85". A model that imitates
//! them is right for sums without a carry, and mostly wrong for sums with a carry. Reinforcement learning only sees the true
//! result (`reward_model.ground_truth`) and finds the answers that are rare in the demonstrations. Right and wrong answers for
//! preference training are written too (`arithmetic_answers`).

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::json;

use super::arithmetic_answers::{AnsweredProblem, write_answers};
use super::char_tokenizer::write_char_tokenizer;
use super::preparer::{PrepareArgs, PrepareReport, Preparer};
use super::schema::{VerlRow, write_rows};
use burnish_util::rng::Stream;

pub(super) static ARITHMETIC: Preparer = Preparer {
    name: "arithmetic",
    doc: "sums with careless demonstrations, and a character tokenizer; right and wrong answers in pairs/, unpaired/ and steps/; \
          settings seed train test max_operand ops careless",
    files: "",
    hub: &[],
    licence: "Apache-2.0, as this program",
    run: |args| {
        args.no_input()?;
        arithmetic(&args.output, &ArithmeticOptions::from_settings(args)?)
    },
};

#[derive(Clone, Debug, PartialEq)]
pub struct ArithmeticOptions {
    pub seed: u64,
    /// Number of rows of train.parquet.
    pub train: usize,
    /// Number of rows of test.parquet. They differ from all training rows.
    pub test: usize,
    /// Largest operand; the smallest is 0.
    pub max_operand: u32,
    /// Operators: characters of "+-*".
    pub ops: String,
    /// Share of demonstrations that forget to carry, among demonstrations with a carry.
    pub(crate) careless: f64,
}

impl ArithmeticOptions {
    /// Reads the options, by default `seed=0 train=6144 test=512 max_operand=99 ops=+ careless=0.7`.
    pub fn from_settings(args: &PrepareArgs) -> Result<Self> {
        args.only_settings(&["seed", "train", "test", "max_operand", "ops", "careless"])?;
        Ok(Self {
            seed: args.setting("seed", 0)?,
            train: args.setting("train", 6144)?,
            test: args.setting("test", 512)?,
            max_operand: args.setting("max_operand", 99)?,
            ops: args.setting("ops", "+".into())?,
            careless: args.setting("careless", 0.7)?,
        })
    }
}

/// Writes `output`/{train,test}.parquet, answers to their problems in `output`/{pairs,unpaired,steps}, and a tokenizer folder
/// `output`/tokenizer. All problems differ, and the same options give the same files.
pub fn arithmetic(output: &Path, options: &ArithmeticOptions) -> Result<PrepareReport> {
    let mut ops: Vec<char> = options.ops.chars().collect();
    ops.sort_unstable();
    ops.dedup();
    if ops.is_empty() || ops.iter().any(|op| !"+-*".contains(*op)) {
        bail!("ops={}: use characters of \"+-*\"", options.ops);
    }
    if options.train == 0 || options.test == 0 {
        bail!("train={} test={}: both must be at least 1", options.train, options.test);
    }
    if !(0.0..=1.0).contains(&options.careless) {
        bail!("careless={}: must be a probability, from 0 to 1", options.careless);
    }
    let operands = options.max_operand as usize + 1;
    let existing = operands.saturating_mul(operands).saturating_mul(ops.len());
    let requested = options.train + options.test;
    if requested > existing {
        bail!("train={} and test={} need {requested} problems, but only {existing} exist", options.train, options.test);
    }

    let numbers = choose(existing, requested, options.seed);
    let problem = |&number: &usize| {
        let (pair, op) = (number / ops.len(), ops[number % ops.len()]);
        let careless = Stream::new(options.seed, "careless", &[number as u64]).uniform() < options.careless;
        solve(number, pair / operands, op, pair % operands, careless)
    };
    let problems: Vec<Problem> = numbers.iter().map(problem).collect();
    let (test, train) = problems.split_at(options.test);
    let mut files = Vec::new();
    for (split, problems) in [("train", train), ("test", test)] {
        let path = output.join(format!("{split}.parquet"));
        write_rows(&path, problems.iter().enumerate().map(|(index, problem)| problem.row(split, index)).collect())?;
        files.push((path, problems.len()));
        let answers: Vec<AnsweredProblem> = problems.iter().map(Problem::answered).collect();
        files.extend(write_answers(output, split, &answers, options.seed)?);
    }
    write_char_tokenizer(&output.join("tokenizer"))?;
    Ok(PrepareReport { files })
}

/// Returns the problem with its true result. The demonstration of a `careless` pupil forgets to carry or borrow.
fn solve(number: usize, left: usize, op: char, right: usize, careless: bool) -> Problem {
    let (a, b) = (left as i128, right as i128);
    let result = match op {
        '+' => a + b,
        '-' => a - b,
        _ => a * b,
    };
    let forgotten = match op {
        '+' if a % 10 + b % 10 >= 10 => -10,
        '-' if a >= b && a % 10 < b % 10 => 10,
        _ => 0,
    };
    let question = format!("{left}{op}{right}=");
    let demonstration = if careless { result + forgotten } else { result };
    Problem { number, left, op, right, question, result, forgotten, demonstration }
}

struct Problem {
    number: usize,
    left: usize,
    op: char,
    right: usize,
    question: String,
    result: i128,
    /// Error from forgetting to carry or borrow; 0 without a carry or borrow.
    forgotten: i128,
    demonstration: i128,
}

impl Problem {
    fn answered(&self) -> AnsweredProblem {
        let &Self { number, left, op, right, result, forgotten, .. } = self;
        AnsweredProblem { number, left, right, op, result, careless: (forgotten != 0).then_some(result + forgotten) }
    }

    fn row(&self, split: &str, index: usize) -> VerlRow {
        let (question, answer) = (&self.question, self.demonstration.to_string());
        VerlRow {
            data_source: "burnish/arithmetic",
            prompt: VerlRow::user(question),
            ability: "math",
            style: "rule",
            ground_truth: self.result.to_string(),
            extra_info: json!({"split": split, "index": index, "answer": answer, "question": question}),
        }
    }
}

/// Draws `k` different integers of 0..n in random order: Fisher–Yates on an array that stores only changed elements.
pub(super) fn choose(n: usize, k: usize, seed: u64) -> Vec<usize> {
    let mut stream = Stream::new(seed, "arithmetic", &[]);
    let mut moved: HashMap<usize, usize> = HashMap::new();
    let mut draw = |i: usize| {
        let j = i + stream.below(n - i);
        let chosen = moved.get(&j).copied().unwrap_or(j);
        let displaced = moved.get(&i).copied().unwrap_or(i);
        moved.insert(j, displaced);
        chosen
    };
    (0..k.min(n)).map(&mut draw).collect()
}
