//! The scorer that runs programs in the sandbox.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::cases::Cases;
use super::program;
use crate::score::Score;
use crate::score_input::ScoreInput;

/// Checks a row, as described at [`Scorer::check`](crate::Scorer::check).
pub fn check(input: &ScoreInput) -> Result<()> {
    if input.ground_truth.is_null() { Ok(()) } else { cases_of(input).map(drop) }
}

fn cases_of(input: &ScoreInput) -> Result<Cases> {
    Cases::read(input.ground_truth).with_context(|| format!("the ground truth of {}", input.data_source))
}

/// Scores with the share of passed cases; the registered scorer. The extra `acc`, which verl's reward manager adds to a bare
/// number, has the same value. The note `tests` holds the verdict on each case, in verl's words.
pub fn score(input: &ScoreInput) -> Result<Score> {
    if input.ground_truth.is_null() {
        return Ok(Score::abstain());
    }
    let Some(sandbox) = &input.services.sandbox else {
        bail!("the programs of {} need a sandbox to run in: set reward.sandbox_fusion.url", input.data_source)
    };
    let cases = cases_of(input)?;
    let verdicts = match program::last_code_block(input.solution) {
        Some(program) => sandbox.run(program, cases)?,
        None => Vec::new(),
    };
    let passed = verdicts.iter().filter(|verdict| verdict.passed).count();
    let share = if verdicts.is_empty() { 0.0 } else { passed as f64 / verdicts.len() as f64 };
    let tests: Vec<Value> = verdicts.iter().map(|verdict| verdict.status.into()).collect();
    Ok(Score { extras: vec![("acc".into(), share)], notes: vec![("tests".into(), tests.into())], ..Score::new(share as f32) })
}
