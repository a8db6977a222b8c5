//! TRL's `get_repetition_penalty_reward`: a penalty for responses that repeat themselves.

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};

use super::function::Function;
use super::function_setting::{FunctionSetting, Takes};
use super::score::Score;
use super::score_input::ScoreInput;

pub const FUNCTION: Function = Function {
    name: "repetition_penalty_reward",
    doc: "A penalty for repeated runs of tokens: from 0 without repetition towards max_penalty if everything repeats.\n\
          Formula: max_penalty·(1 − distinct/all) over the runs of ngram_size tokens; 0 for shorter responses.\n\
          Paper: Yeo et al. 2025, Demystifying Long Chain-of-Thought Reasoning, arXiv:2502.03373, appendix C.2.\n\
          TRL: get_repetition_penalty_reward(ngram_size=3, max_penalty=-1.0).",
    settings: &[
        FunctionSetting { name: "ngram_size", default: Some(3.0), takes: Takes::Count(1) },
        FunctionSetting { name: "max_penalty", default: Some(-1.0), takes: Takes::Number },
    ],
    reads: &[],
    needs: &[],
    opens: None,
    check: |input| tokens(input).map(drop),
    run: score,
};

fn tokens<'a>(input: &ScoreInput<'a>) -> Result<&'a [u32]> {
    input.token_ids.context("repeated tokens can only be counted in responses generated here, not in text")
}

fn score(input: &ScoreInput) -> Result<Score> {
    let ids = tokens(input)?;
    let max_penalty = input.setting("max_penalty")?;
    ensure!(max_penalty <= 0.0, "the setting max_penalty is {max_penalty}: it must not be positive");
    Ok(Score::new(penalty(ids, input.count("ngram_size")?, max_penalty) as f32))
}

/// Returns `max_penalty` times the share of n-grams of `ngram_size` (at least 1) tokens that repeat an earlier one.
pub fn penalty(ids: &[u32], ngram_size: usize, max_penalty: f64) -> f64 {
    let runs = ids.windows(ngram_size.max(1));
    let all = runs.len();
    let distinct = runs.collect::<HashSet<_>>().len();
    // Without repetition the result must be 0 and not −0, even if there are no n-grams.
    if distinct == all { 0.0 } else { (1.0 - distinct as f64 / all as f64) * max_penalty }
}
