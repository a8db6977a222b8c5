//! TRL's `get_soft_overlong_punishment`: DAPO's penalty for responses close to the length limit, as a separate reward function.

use anyhow::Result;

use super::function::Function;
use super::function_setting::{FunctionSetting, Takes};
use super::score::Score;
use super::score_input::ScoreInput;

pub(crate) const FUNCTION: Function = Function {
    name: "soft_overlong_punishment_reward",
    doc: "A penalty for responses near a length limit: 0 for short responses, down to -1 at the limit and above.\n\
          Formula: 0 up to max_completion_len − soft_punish_cache tokens, then (max_completion_len − soft_punish_cache − tokens) / \
          soft_punish_cache, −1 above max_completion_len.\n\
          Paper: Yu et al. 2025, DAPO, arXiv:2503.14476, equation 13.\n\
          TRL: get_soft_overlong_punishment(max_completion_len, soft_punish_cache).",
    settings: &[
        FunctionSetting { name: "max_completion_len", default: None, takes: Takes::Count(0) },
        FunctionSetting { name: "soft_punish_cache", default: None, takes: Takes::Count(0) },
    ],
    reads: &[],
    needs: &[],
    opens: None,
    check: |input| input.token_count().map(drop),
    run: score,
};

fn score(input: &ScoreInput) -> Result<Score> {
    let (limit, cache) = (input.count("max_completion_len")?, input.count("soft_punish_cache")?);
    let tokens = input.token_count()?;
    let free = limit as f64 - cache as f64;
    Ok(Score::new(match tokens as f64 {
        tokens if tokens <= free => 0.0,
        tokens if tokens <= limit as f64 => ((free - tokens) / cache as f64) as f32,
        _ => -1.0,
    }))
}
