//! TRL's `get_cosine_scaled_reward`: a short correct response scores higher than a long one, and a long wrong one loses less than
//! a short one.

use std::f64::consts::PI;

use anyhow::{Context, Result};

use super::function::{Function, RowPart};
use super::function_setting::{FunctionSetting, Takes};
use super::score::Score;
use super::score_input::ScoreInput;
use super::scorers::find;
use super::services::RewardService;

pub(crate) const FUNCTION: Function = Function {
    name: "cosine_scaled_reward",
    doc: "The data source's score, scaled by length. A right response gets from max_value_correct (short) down to min_value_correct (at \
          max_len tokens and above), a wrong one from min_value_wrong up to max_value_wrong. Right means acc > 0, or a score > 0 if the \
          data source's scorer reports no acc.\n\
          Formula: long + ½·(short − long)·(1 + cos(π·min(tokens / max_len, 1))).\n\
          Paper: Yeo et al. 2025, Demystifying Long Chain-of-Thought Reasoning, arXiv:2502.03373, appendix C.1.\n\
          TRL: get_cosine_scaled_reward(max_len, …), which asks math-verify what is right.",
    settings: &[
        FunctionSetting { name: "max_len", default: None, takes: Takes::Count(1) },
        FunctionSetting { name: "min_value_wrong", default: Some(-1.0), takes: Takes::Number },
        FunctionSetting { name: "max_value_wrong", default: Some(-0.5), takes: Takes::Number },
        FunctionSetting { name: "min_value_correct", default: Some(0.5), takes: Takes::Number },
        FunctionSetting { name: "max_value_correct", default: Some(1.0), takes: Takes::Number },
    ],
    reads: &[RowPart::DataSource, RowPart::GroundTruth],
    needs: &[RewardService::Rules],
    opens: None,
    check,
    run: score,
};

fn check(input: &ScoreInput) -> Result<()> {
    let rule = find(input.data_source)?;
    (rule.check)(input).with_context(|| format!("the rule \"{}\"", rule.name))?;
    if input.ground_truth.is_null() { Ok(()) } else { input.token_count().map(drop) }
}

fn score(input: &ScoreInput) -> Result<Score> {
    let rule = find(input.data_source)?;
    let result = (rule.run)(&ScoreInput { settings: &[], ..*input }).with_context(|| format!("the rule \"{}\"", rule.name))?;
    let Some(score) = result.score else { return Ok(Score::abstain()) };
    let acc = result.extras.iter().find(|(name, _)| name == "acc").map_or(f64::from(score), |(_, acc)| *acc);
    let (long, short) = match acc > 0.0 {
        true => ("min_value_correct", "max_value_correct"),
        false => ("max_value_wrong", "min_value_wrong"),
    };
    let (long, short) = (input.setting(long)?, input.setting(short)?);
    let progress = (input.token_count()? as f64 / input.count("max_len")? as f64).min(1.0);
    let reward = long + 0.5 * (short - long) * (1.0 + (progress * PI).cos());
    Ok(Score { pred: result.pred, ..Score::new(reward as f32) })
}
