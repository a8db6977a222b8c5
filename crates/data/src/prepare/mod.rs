//! Writes data sets in verl's parquet schema: `trainer data NAME --input … --output …`.
//!
//! `preparer` defines a data set; `published` finds its files, `row_mapping` maps their rows to verl's `schema`, and `pairs`
//! writes rows for reward models.

pub mod arithmetic;
pub mod char_tokenizer;
pub mod schema;

mod arithmetic_answers;
mod calculator;
mod calculator_tokenizer;
mod dapo_math;
#[cfg(test)]
mod example;
mod geo3k;
mod gsm8k;
mod hh_rlhf;
mod math;
mod pairs;
mod preparer;
mod published;
mod row_mapping;
mod tldr;

use anyhow::{Result, anyhow};

use burnish_util::suggest::did_you_mean;
pub use preparer::{PrepareArgs, PrepareReport, Preparer};
pub use schema::{VerlRow, write_rows};

/// All data sets.
pub static PREPARERS: &[&Preparer] = &[
    &gsm8k::GSM8K,
    &math::MATH,
    &dapo_math::DAPO_MATH,
    &geo3k::GEO3K,
    &hh_rlhf::HH_RLHF,
    &tldr::TLDR,
    &arithmetic::ARITHMETIC,
    &calculator::CALCULATOR,
];

/// Returns the preparer with this name.
pub fn find(name: &str) -> Result<&'static Preparer> {
    PREPARERS.iter().find(|preparer| preparer.name == name).copied().ok_or_else(|| {
        let known: Vec<&str> = PREPARERS.iter().map(|preparer| preparer.name).collect();
        anyhow!("unknown data set \"{name}\"; known are {}.{}", known.join(", "), did_you_mean(name, known.iter().copied()))
    })
}
