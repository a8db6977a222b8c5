//! verl's `utils/reward_score/search_r1_like_qa_em.py`: the last `<answer>`, compared with several correct ones.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::score::Score;
use super::score_input::ScoreInput;
use burnish_util::python_text::{is_space, is_word, strip};

pub(crate) const DATA_SOURCES: &[&str] = &[
    "searchR1_nq",
    "searchR1_triviaqa",
    "searchR1_popqa",
    "searchR1_hotpotqa",
    "searchR1_2wikimultihopqa",
    "searchR1_musique",
    "searchR1_bamboogle",
];

/// Largest number of tags of one kind; with more tags, the reward is divided by four.
const MAX_TAGS: usize = 10;

/// Returns 1 if the last answer is one of the ground truth's `target` (a text or a list of texts), ignoring case, punctuation,
/// articles and white space, else 0. If the response has more than ten opening or closing tags, a correct answer scores a
/// quarter.
///
/// # Errors
/// If the ground truth has no such `target`.
pub(crate) fn score(input: &ScoreInput) -> Result<Score> {
    let Some(targets) = targets_of(input)? else { return Ok(Score::abstain()) };
    let solution = input.opened("<answer>");
    let answer = last_answer(&solution);
    let correct = answer.is_some_and(|answer| {
        let answer = normal_form(answer);
        targets.iter().any(|target| normal_form(target) == answer)
    });
    let crowded = ["<answer>", "</answer>"].iter().any(|tag| solution.matches(tag).count() > MAX_TAGS);
    let score = match (correct, crowded) {
        (false, _) => 0.0,
        (true, true) => 0.25,
        (true, false) => 1.0,
    };
    Ok(Score::graded(score, answer))
}

/// Checks a row, as described at [`super::Scorer::check`].
pub(crate) fn check(input: &ScoreInput) -> Result<()> {
    targets_of(input).map(drop)
}

/// Returns the correct answers; `None` without a ground truth.
fn targets_of<'a>(input: &ScoreInput<'a>) -> Result<Option<Vec<&'a str>>> {
    if input.ground_truth.is_null() {
        return Ok(None);
    }
    let place = || format!("the ground truth of {}: {}", input.data_source, input.ground_truth);
    targets(input.ground_truth).with_context(place).map(Some)
}

fn targets(truth: &Value) -> Result<Vec<&str>> {
    let target = truth.get("target").context("there is no \"target\"")?;
    match target {
        Value::String(text) => Ok(vec![text]),
        Value::Array(texts) => texts.iter().map(|text| text.as_str().context("a target must be text")).collect(),
        _ => bail!("\"target\" must be text or a list of texts"),
    }
}

fn last_answer(solution: &str) -> Option<&str> {
    let mut rest = solution;
    let mut last = None;
    while let Some((_, opened)) = rest.split_once("<answer>")
        && let Some((answer, behind)) = opened.split_once("</answer>")
    {
        (last, rest) = (Some(strip(answer)), behind);
    }
    last
}

/// Returns the text in lower case, without ASCII punctuation and English articles, with one space between words.
pub(crate) fn normal_form(text: &str) -> String {
    let plain = text.to_lowercase().replace(|c: char| c.is_ascii_punctuation(), "");
    let (mut result, mut rest) = (String::new(), plain.as_str());
    while let Some(next) = rest.chars().next() {
        let run = if is_word(next) { rest.find(|c| !is_word(c)) } else { rest.find(is_word) };
        let (word, behind) = rest.split_at(run.unwrap_or(rest.len()));
        result += if ["a", "an", "the"].contains(&word) { " " } else { word };
        rest = behind;
    }
    result.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
