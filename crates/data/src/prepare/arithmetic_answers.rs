//! Right and wrong answers to the arithmetic problems, as rows for preference training: pairs, single answers with a label, and
//! step-by-step solutions.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::{Value, json};

use crate::files::table::RowTable;
use burnish_util::rng::Stream;

/// A problem with its answers.
pub(super) struct AnsweredProblem {
    /// Index of the problem among all possible ones; selects its random stream.
    pub number: usize,
    pub left: usize,
    pub right: usize,
    pub op: char,
    pub result: i128,
    /// Answer of a pupil who forgets to carry or borrow; `None` without a carry or borrow.
    pub(crate) careless: Option<i128>,
}

/// Writes `folder`/{pairs,unpaired,steps}/`split`.parquet: per problem, a pair of a right and a wrong answer, and one answer with
/// a label; per sum, the columns of the addition with a label each. Returns the files with their numbers of rows.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write_answers(
    folder: &Path,
    split: &str,
    problems: &[AnsweredProblem],
    seed: u64,
) -> Result<Vec<(PathBuf, usize)>> {
    let write = |kind: &str, columns: &[&str], rows: Vec<Vec<Value>>| -> Result<(PathBuf, usize)> {
        let path = folder.join(kind).join(format!("{split}.parquet"));
        let count = rows.len();
        let mut values: Vec<Vec<Value>> = columns.iter().map(|_| Vec::with_capacity(count)).collect();
        for row in rows {
            values.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        let columns: Vec<(&str, &[Value])> =
            columns.iter().zip(&values).map(|(name, values)| (*name, values.as_slice())).collect();
        RowTable::without_columns(count)?.write_columns(&path, &[], &columns)?;
        Ok((path, count))
    };
    let pair = |p: &AnsweredProblem| vec![p.question(), p.result.to_string().into(), p.wrong(seed).to_string().into()];
    let single = |p: &AnsweredProblem| {
        let is_right = p.stream(seed, "label").below(2) == 0;
        let answer = if is_right { p.result } else { p.wrong(seed) };
        vec![p.question(), answer.to_string().into(), is_right.into()]
    };
    let stepwise = |p: &AnsweredProblem| {
        let (steps, labels) = p.steps(seed);
        vec![p.question(), json!(steps), json!(labels)]
    };
    let mut files = vec![
        write("pairs", &["prompt", "chosen", "rejected"], problems.iter().map(pair).collect())?,
        write("unpaired", &["prompt", "completion", "label"], problems.iter().map(single).collect())?,
    ];
    let sums: Vec<_> = problems.iter().filter(|problem| problem.op == '+').map(stepwise).collect();
    if !sums.is_empty() {
        files.push(write("steps", &["prompt", "completions", "labels"], sums)?);
    }
    Ok(files)
}

impl AnsweredProblem {
    fn question(&self) -> Value {
        format!("{}{}{}=", self.left, self.op, self.right).into()
    }

    fn stream(&self, seed: u64, purpose: &'static str) -> Stream {
        Stream::new(seed, purpose, &[self.number as u64])
    }

    /// Returns a plausible wrong answer. In half of the problems with a carry, the carry is forgotten; else the answer is off by
    /// 1 or 10, or has another last digit.
    fn wrong(&self, seed: u64) -> i128 {
        let mut stream = self.stream(seed, "wrong");
        if let Some(careless) = self.careless.filter(|_| stream.below(2) == 0) {
            return careless;
        }
        let last = self.result.rem_euclid(10);
        let other = (last + 1 + stream.below(9) as i128) % 10;
        [self.result - 1, self.result + 1, self.result - 10, self.result + 10, self.result - last + other][stream.below(5)]
    }

    /// Returns the columns of an addition from the ones ("7+8=15", "3+5+1=9"), then the result, with a label each. In half of the
    /// problems one column is wrong (the carry is forgotten, or the sum is one too high), and so is everything after it.
    fn steps(&self, seed: u64) -> (Vec<String>, Vec<bool>) {
        let mut stream = self.stream(seed, "steps");
        let columns = self.left.max(self.right).max(1).ilog10() + 1;
        let slip = if stream.below(2) == 0 { Some(stream.below(columns as usize)) } else { None };
        let (mut steps, mut labels, mut carried, mut result) = (vec![], vec![], 0, 0);
        for column in 0..columns {
            let place = 10_usize.pow(column);
            let (a, b) = (self.left / place % 10, self.right / place % 10);
            let is_slip = slip == Some(column as usize);
            let carry = if is_slip { 0 } else { carried };
            let sum = a + b + carry + usize::from(is_slip && carried == 0);
            let carry = if carry > 0 { format!("+{carry}") } else { String::new() };
            steps.push(format!("{a}+{b}{carry}={sum}"));
            labels.push(slip.is_none_or(|slip| (column as usize) < slip));
            let is_last = column + 1 == columns;
            result += if is_last { sum } else { sum % 10 } * place;
            carried = sum / 10;
        }
        steps.push(result.to_string());
        labels.push(slip.is_none());
        (steps, labels)
    }
}

#[cfg(test)]
mod tests {
    use super::AnsweredProblem;

    /// Wrong answers are wrong, and a solution is right before its first wrong step and wrong from that step on.
    #[test]
    fn answers_are_what_their_labels_say() {
        let (mut slips, mut forgotten) = (0, 0);
        for number in 0..400 {
            let (left, right) = (number % 100, number * 7 % 100);
            let result = (left + right) as i128;
            let careless = (left % 10 + right % 10 >= 10).then_some(result - 10);
            let problem = AnsweredProblem { number, left, right, op: '+', result, careless };
            assert_ne!(problem.wrong(3), result);
            forgotten += usize::from(Some(problem.wrong(3)) == careless);
            let (steps, labels) = problem.steps(3);
            assert_eq!(steps.len(), labels.len());
            assert_eq!(steps.last().unwrap() == &result.to_string(), labels[labels.len() - 1], "{left}+{right}: {steps:?}");
            assert!(labels.is_sorted_by(|earlier, later| earlier >= later), "{labels:?}");
            slips += usize::from(labels.contains(&false));
        }
        assert!((150..250).contains(&slips) && forgotten > 50, "{slips} {forgotten}");
    }
}
