//! TRL's `think_format_reward`: 1 if the response first thinks, exactly once, and then answers.

use anyhow::Result;

use super::function::Function;
use super::function_setting::PREFILLED;
use super::score::Score;
use super::score_input::ScoreInput;

const TAG: &str = "<think>";

pub(crate) const FUNCTION: Function = Function {
    name: "think_format_reward",
    doc: "1 if the response begins with \"<think>\", closes it and does not open it again, else 0.\n\
          Formula: the response matches ^<think>(?!.*<think>)(.*?)</think>.*$, where a dot is any character. With prefilled=true the \
          response begins behind the prompt's \"<think>\".\n\
          TRL: think_format_reward.",
    settings: PREFILLED,
    reads: &[],
    needs: &[],
    opens: Some(TAG),
    check: |_| Ok(()),
    run: score,
};

fn score(input: &ScoreInput) -> Result<Score> {
    // The equivalent of the pattern without look-ahead, which `regex` does not support.
    let solution = input.opened(TAG);
    let thought = solution.strip_prefix(TAG);
    let matches = thought.is_some_and(|rest| !rest.contains(TAG) && rest.contains("</think>"));
    Ok(Score::new(f32::from(u8::from(matches))))
}
