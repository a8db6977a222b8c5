//! Pairs of the best and the worst response to a prompt.

use serde_json::json;

use super::entry::SelectedRows;
use super::row::{highest, object, prompt, tools, turns};
use super::scored::{ScoredResponse, ScoredResponses};

/// Makes a pair for each prompt whose best and worst response differ in text, and in score by at least `min_margin`. Columns are
/// TRL's (`ours`) or OpenRLHF's.
pub(super) fn preferences(responses: &ScoredResponses, min_margin: f64, ours: bool) -> SelectedRows {
    let (mut rows, mut tied, mut close, mut same, mut unlike) = (vec![], 0, 0, 0, 0);
    for group in responses.by_prompt() {
        let (chosen, rejected) = (highest(&group), lowest(&group));
        let margin = chosen.score - rejected.score;
        let count = match () {
            () if margin == 0.0 => &mut tied,
            () if margin < min_margin => &mut close,
            () if turns(chosen) == turns(rejected) => &mut same,
            () if prompt(chosen) != prompt(rejected) || tools(chosen) != tools(rejected) => &mut unlike,
            () => {
                rows.push(row(chosen, rejected, ours));
                continue;
            }
        };
        *count += 1;
    }
    let mut left_out = vec![
        (tied, "prompts whose responses all have the same score".to_owned()),
        (close, format!("prompts whose best and worst response are less than {min_margin} apart")),
        (same, "prompts whose best and worst response are the same text".to_owned()),
    ];
    if unlike > 0 {
        left_out.push((unlike, "prompts whose best and worst conversation begin with different messages or tools".to_owned()));
    }
    SelectedRows { rows, left_out }
}

/// Returns the first response with the lowest score.
fn lowest<'a>(responses: &[&'a ScoredResponse]) -> &'a ScoredResponse {
    responses
        .iter()
        .copied()
        .reduce(|worst, other| if other.score < worst.score { other } else { worst })
        .expect("a group has responses")
}

fn row(chosen: &ScoredResponse, rejected: &ScoredResponse, ours: bool) -> serde_json::Map<String, serde_json::Value> {
    if !ours {
        return object([
            ("prompt", (*chosen.prompt).clone()),
            ("chosen", chosen.response.as_str().into()),
            ("chosen_reward", json!(chosen.score)),
            ("rejected", rejected.response.as_str().into()),
            ("rejected_reward", json!(rejected.score)),
        ]);
    }
    let mut row = object([
        ("prompt", prompt(chosen)),
        ("chosen", turns(chosen)),
        ("rejected", turns(rejected)),
        ("chosen_score", json!(chosen.score)),
        ("rejected_score", json!(rejected.score)),
        ("margin", json!(chosen.score - rejected.score)),
    ]);
    row.extend(tools(chosen));
    row
}
