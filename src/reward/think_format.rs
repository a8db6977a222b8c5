//! TRL's `think_format_reward`: did the response think first, once, and then answer?

use anyhow::Result;

use super::{Function, Score, ScoreInput};

pub const FUNCTION: Function = Function {
    name: "think_format_reward",
    doc: "1 if the response begins with \"<think>\", closes it and does not open it again, else 0.\n\
          Formula: the response matches ^<think>(?!.*<think>)(.*?)</think>.*$, where a dot is any character.\n\
          TRL: think_format_reward.",
    settings: &[],
    check: |_| Ok(()),
    run: score,
};

fn score(input: &ScoreInput) -> Result<Score> {
    // What the pattern accepts, without the look-ahead that `regex` does not have.
    let thought = input.solution.strip_prefix("<think>");
    let matches = thought.is_some_and(|rest| !rest.contains("<think>") && rest.contains("</think>"));
    Ok(Score::new(f32::from(u8::from(matches))))
}
