//! Format of an arithmetic answer: one integer, right or wrong.

use std::sync::LazyLock;

use anyhow::Result;
use regex::Regex;

use super::Function;
use super::score::Score;
use super::score_input::ScoreInput;

pub(crate) const FUNCTION: Function = Function {
    name: "integer_format",
    doc: "1 if the response is one integer, apart from white space around it, else 0.\n\
          Formula: the trimmed response matches ^-?[0-9]+$.\n\
          When: together with `arithmetic`, as a second reward that is easier to get.",
    settings: &[],
    reads: &[],
    needs: &[],
    opens: None,
    check: |_| Ok(()),
    run: score,
};

fn score(input: &ScoreInput) -> Result<Score> {
    static INTEGER: LazyLock<Regex> = LazyLock::new(|| Regex::new("^-?[0-9]+$").expect("a constant pattern"));
    Ok(Score::new(f32::from(u8::from(INTEGER.is_match(input.solution.trim())))))
}
