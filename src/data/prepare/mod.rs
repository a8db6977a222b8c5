//! Writes data sets in verl's parquet schema: `trainer data NAME --input … --output …`.

pub mod arithmetic;
pub mod char_tokenizer;
pub mod gsm8k;
pub mod schema;

mod preparer;

use anyhow::{Result, anyhow};

use crate::util::suggest::did_you_mean;
pub use preparer::{PrepareArgs, PrepareReport, Preparer};
pub use schema::{MathProblem, write_parquet};

/// All data sets.
pub static PREPARERS: &[Preparer] = &[
    Preparer {
        name: "gsm8k",
        doc: "GSM8K from its published train.jsonl and test.jsonl (--input)",
        run: |args| {
            args.only_settings(&[])?;
            gsm8k::gsm8k(args.input()?, &args.output)
        },
    },
    Preparer {
        name: "arithmetic",
        doc: "sums whose demonstrations are careless, with a character tokenizer; settings seed train test max_operand ops careless",
        run: |args| {
            args.no_input()?;
            arithmetic::arithmetic(&args.output, &arithmetic::ArithmeticOptions::from_settings(args)?)
        },
    },
];

/// The preparer of that name.
pub fn find(name: &str) -> Result<&'static Preparer> {
    PREPARERS.iter().find(|preparer| preparer.name == name).ok_or_else(|| {
        let known: Vec<&str> = PREPARERS.iter().map(|preparer| preparer.name).collect();
        anyhow!("no data set \"{name}\"; there are {}.{}", known.join(", "), did_you_mean(name, known.iter().copied()))
    })
}
