//! Writes data sets in verl's parquet schema: `trainer data NAME --input … --output …`.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};

pub mod arithmetic;
pub mod char_tokenizer;
pub mod gsm8k;
pub mod schema;

use crate::util::suggest::did_you_mean;
pub use schema::{Problem, write_parquet};

/// The arguments of a preparer: two folders and `key=value` settings.
#[derive(Clone, Debug)]
pub struct PrepareArgs {
    pub input: Option<PathBuf>,
    pub output: PathBuf,
    pub settings: Vec<(String, String)>,
}

/// The written files, with their numbers of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareReport {
    pub files: Vec<(PathBuf, usize)>,
}

/// One data set: one file of this folder and one line of [`PREPARERS`].
pub struct Preparer {
    pub name: &'static str,
    pub doc: &'static str,
    pub run: fn(&PrepareArgs) -> Result<PrepareReport>,
}

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

impl PrepareArgs {
    fn input(&self) -> Result<&PathBuf> {
        self.input.as_ref().context("--input FOLDER is missing: the folder of the published files")
    }

    fn no_input(&self) -> Result<()> {
        if self.input.is_some() { Err(anyhow!("this data set is made from nothing: it takes no --input")) } else { Ok(()) }
    }

    fn only_settings(&self, known: &[&str]) -> Result<()> {
        match self.settings.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) if known.is_empty() => bail!("unknown setting \"{key}\": this data set has none"),
            Some((key, _)) => {
                let hint = did_you_mean(key, known.iter().copied());
                bail!("unknown setting \"{key}\"; there are {}.{hint}", known.join(", "))
            }
        }
    }

    /// The last value given for `key`, or `default`.
    fn setting<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T> {
        match self.settings.iter().rev().find(|(name, _)| name == key) {
            None => Ok(default),
            Some((_, text)) => text.parse().map_err(|_| anyhow!("{key}={text}: not a valid value")),
        }
    }
}
