//! A task that a tiny model can only solve with a tool: answer "467*83=" with the product, using a calculator.
//!
//! The demonstrations (`demonstrations/`) are conversations of a pupil who mostly guesses, and who mostly calls the calculator
//! with wrong expressions. A model that imitates them knows how to write a call and how to read its result, but is mostly wrong.
//! Reinforcement learning only sees the true product, and finds out when to call and with which expression.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::arithmetic::choose;
use super::calculator_tokenizer::write_calculator_tokenizer;
use super::preparer::{PrepareArgs, PrepareReport, Preparer};
use super::schema::{VerlRow, write_with};
use crate::files::table::RowTable;
use burnish_util::rng::Stream;

pub(super) static CALCULATOR: Preparer = Preparer {
    name: "calculator",
    doc: "products for a model with a calculator as tool, and a tokenizer; conversations of a pupil who mostly guesses in \
          demonstrations/; settings seed train test min_operand max_operand calls right",
    files: "",
    hub: &[],
    licence: "Apache-2.0, as this program",
    run: |args| {
        args.no_input()?;
        calculator(&args.output, &CalculatorOptions::from_settings(args)?)
    },
};

#[derive(Clone, Debug, PartialEq)]
struct CalculatorOptions {
    seed: u64,
    /// Number of rows of train.parquet.
    train: usize,
    /// Number of rows of test.parquet. They differ from all training rows.
    test: usize,
    min_operand: u32,
    max_operand: u32,
    /// Share of demonstrations that call the calculator.
    calls: f64,
    /// Share of calls whose expression is the problem.
    right: f64,
}

impl CalculatorOptions {
    /// Reads the options, by default `seed=0 train=6144 test=512 min_operand=10 max_operand=999 calls=0.4 right=0.2`.
    fn from_settings(args: &PrepareArgs) -> Result<Self> {
        args.only_settings(&["seed", "train", "test", "min_operand", "max_operand", "calls", "right"])?;
        Ok(Self {
            seed: args.setting("seed", 0)?,
            train: args.setting("train", 6144)?,
            test: args.setting("test", 512)?,
            min_operand: args.setting("min_operand", 10)?,
            max_operand: args.setting("max_operand", 999)?,
            calls: args.setting("calls", 0.4)?,
            right: args.setting("right", 0.2)?,
        })
    }
}

/// Writes `output`/{train,test}.parquet, demonstrations of their problems in `output`/demonstrations, and a tokenizer folder
/// `output`/tokenizer. All problems differ, and the same options give the same files.
fn calculator(output: &Path, options: &CalculatorOptions) -> Result<PrepareReport> {
    let &CalculatorOptions { min_operand: min, max_operand: max, calls, right, .. } = options;
    if options.train == 0 || options.test == 0 {
        bail!("train={} test={}: both must be at least 1", options.train, options.test);
    }
    if min > max {
        bail!("min_operand={min} is larger than max_operand={max}");
    }
    if [calls, right].iter().any(|share| !(0.0..=1.0).contains(share)) {
        bail!("calls={calls} right={right}: both must be probabilities, from 0 to 1");
    }
    let operands = (max - min) as usize + 1;
    let existing = operands.saturating_mul(operands);
    let requested = options.train.saturating_add(options.test);
    if requested > existing {
        bail!("train={} and test={} need {requested} problems, but only {existing} exist", options.train, options.test);
    }

    let problem = |number: usize| Problem {
        number,
        left: u64::from(min) + (number / operands) as u64,
        right: u64::from(min) + (number % operands) as u64,
    };
    let problems: Vec<Problem> = choose(existing, requested, options.seed).into_iter().map(problem).collect();
    let (test, train) = problems.split_at(options.test);
    let mut files = Vec::new();
    for (split, problems) in [("train", train), ("test", test)] {
        let path = output.join(format!("{split}.parquet"));
        let rows = problems.iter().enumerate().map(|(index, problem)| problem.row(split, index)).collect();
        let agents = vec![Value::from("tool_agent"); problems.len()];
        write_with(&path, rows, &[("agent_name", &agents)])?;
        files.push((path, problems.len()));
        let path = output.join("demonstrations").join(format!("{split}.parquet"));
        let conversations: Vec<Value> = problems.iter().map(|problem| problem.demonstration(options)).collect();
        let tools = vec![Value::from(TOOLS); problems.len()];
        RowTable::without_columns(problems.len())?.write_columns(
            &path,
            &[],
            &[("messages", &conversations), ("tools", &tools)],
        )?;
        files.push((path, problems.len()));
    }
    write_calculator_tokenizer(&output.join("tokenizer"))?;
    Ok(PrepareReport { files })
}

/// Tools of a demonstration. The task's chat template only writes the name.
const TOOLS: &str = r#"[{"type": "function", "function": {"name": "calculator"}}]"#;

struct Problem {
    /// Index of the problem among all possible ones; selects its random stream.
    number: usize,
    left: u64,
    right: u64,
}

impl Problem {
    fn question(&self) -> String {
        format!("{}*{}=", self.left, self.right)
    }

    fn row(&self, split: &str, index: usize) -> VerlRow {
        let question = self.question();
        VerlRow {
            data_source: "burnish/calculator",
            prompt: VerlRow::user(&question),
            ability: "math",
            style: "rule",
            ground_truth: (self.left * self.right).to_string(),
            extra_info: json!({"split": split, "index": index, "question": question}),
        }
    }

    /// Returns the pupil's conversation: a call (with the problem or another expression) and its result, or a guess with as many
    /// digits as the product.
    fn demonstration(&self, options: &CalculatorOptions) -> Value {
        let (a, b) = (self.left, self.right);
        let mut stream = Stream::new(options.seed, "calculator", &[self.number as u64]);
        let question = json!({"role": "user", "content": self.question()});
        if stream.uniform() >= options.calls {
            let digits = (a * b).to_string().len();
            let digit = |place: usize, stream: &mut Stream| match place {
                0 if digits > 1 => 1 + stream.below(9),
                _ => stream.below(10),
            };
            let guess: String = (0..digits).map(|place| digit(place, &mut stream).to_string()).collect();
            return json!([question, {"role": "assistant", "content": guess}]);
        }
        let (expression, result) = match stream.uniform() < options.right {
            true => (format!("{a}*{b}"), a * b),
            false => match stream.below(3) {
                0 => (format!("{a}+{b}"), a + b),
                1 => (a.to_string(), a),
                _ => (format!("{b}*{b}"), b * b),
            },
        };
        let function = json!({"name": "calculator", "arguments": {"expression": expression}});
        json!([
            question,
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]},
            {"role": "tool", "content": result.to_string()},
            {"role": "assistant", "content": result.to_string()},
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every answer after a call is the calculator's result, and the shares of guesses and right calls follow the options.
    #[test]
    fn demonstrations_have_their_shares_and_read_the_calculator() {
        let options = CalculatorOptions { seed: 0, train: 1, test: 1, min_operand: 10, max_operand: 999, calls: 0.4, right: 0.2 };
        let (mut calls, mut right) = (0, 0);
        for number in 0..2000 {
            let problem = Problem { number, left: 10 + number as u64 % 990, right: 10 + number as u64 * 7 % 990 };
            let talk = problem.demonstration(&options);
            let product = (problem.left * problem.right).to_string();
            match talk.as_array().unwrap().as_slice() {
                [_, guess] => assert_eq!(guess["content"].as_str().unwrap().len(), product.len()),
                [_, call, told, answer] => {
                    assert_eq!(told["content"], answer["content"]);
                    let expression = &call["tool_calls"][0]["function"]["arguments"]["expression"];
                    let is_problem = *expression == problem.question().trim_end_matches('=');
                    assert!(!is_problem || answer["content"] == *product);
                    calls += 1;
                    right += usize::from(is_problem);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!((700..900).contains(&calls) && (110..220).contains(&right), "{calls} {right}");
    }

    /// A call has few tokens and reads back unchanged.
    #[test]
    fn a_conversation_is_written_in_few_tokens() {
        let folder = tempfile::tempdir().unwrap();
        write_calculator_tokenizer(folder.path()).unwrap();
        let tokenizer = crate::Tokenizer::load(folder.path()).unwrap();
        let options = CalculatorOptions { seed: 0, train: 1, test: 1, min_operand: 10, max_operand: 999, calls: 1.0, right: 1.0 };
        let talk = Problem { number: 0, left: 467, right: 83 }.demonstration(&options);
        let tools: Value = serde_json::from_str(TOOLS).unwrap();
        let variables: crate::TemplateVariables = [("tools".to_owned(), tools)].into_iter().collect();
        let text = tokenizer.apply_chat_template(&talk, false, variables).unwrap();
        assert_eq!(
            text,
            "<|im_start|>system\n<tools>calculator</tools><|im_end|>\n<|im_start|>user\n467*83=<|im_end|>\n<|im_start|>assistant\n\
             <tool_call>{\"name\": \"calculator\", \"arguments\": {\"expression\": \"467*83\"}}</tool_call><|im_end|>\n\
             <|im_start|>tool\n38761<|im_end|>\n<|im_start|>assistant\n38761<|im_end|>\n"
        );
    }
}
