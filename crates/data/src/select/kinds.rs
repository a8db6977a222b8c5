//! The table of row kinds. Our own kinds have TRL's columns; those named like OpenRLHF's processors have OpenRLHF's columns.

use anyhow::{Result, anyhow, ensure};

use super::conditional::conditional;
use super::entry::{RowKind, SelectOptions, SelectedRows};
use super::preferences::preferences;
use super::row::{OPENRLHF, OURS, ScoredColumns, highest};
use super::scored::{ScoredResponse, ScoredResponses};
use crate::files::conversations::MESSAGES;
use burnish_util::suggest::did_you_mean;

/// All row kinds.
pub static KINDS: &[RowKind] = &[
    RowKind {
        name: "best",
        doc: "the best response to each prompt (the first of equals): prompt, completion, score, for trainer sft",
        reads: &[],
        make: |responses, _| Ok(best(responses, &OURS)),
    },
    RowKind {
        name: "pairs",
        doc: "the best and the worst response to each prompt: prompt, chosen, rejected, their scores and margin, for trainer dpo and rm",
        reads: &["min_margin"],
        make: |responses, options| Ok(preferences(responses, options.min_margin, true)),
    },
    RowKind {
        name: "threshold",
        doc: "every response whose score is at least --threshold: prompt, completion, score, for trainer sft",
        reads: &["threshold"],
        make: |responses, options| threshold(responses, options, true),
    },
    RowKind {
        name: "unpaired",
        doc: "every response, with the label true if its score is at least --threshold: prompt, completion, label, score, for KTO",
        reads: &["threshold"],
        make: |responses, options| threshold(responses, options, false),
    },
    RowKind {
        name: "rs",
        doc: "best, with the columns of OpenRLHF's rejection sampling: input, output, reward",
        reads: &[],
        make: |responses, _| Ok(best(texts(responses, "best")?, &OPENRLHF)),
    },
    RowKind {
        name: "iter_dpo",
        doc: "pairs with the columns of OpenRLHF's iterative DPO: prompt, chosen, chosen_reward, rejected, rejected_reward",
        reads: &["min_margin"],
        make: |responses, options| Ok(preferences(texts(responses, "pairs")?, options.min_margin, false)),
    },
    RowKind {
        name: "csft",
        doc: "every response, with its score in the prompt, for OpenRLHF's conditional SFT: input, output, reward",
        reads: &["reward_template", "normalize_reward"],
        make: |responses, options| conditional(texts(responses, "best, pairs, threshold or unpaired")?, options),
    },
];

/// Finds a row kind by name.
///
/// # Errors
/// If the name is unknown; the message lists all names.
pub fn find(name: &str) -> Result<&'static RowKind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let hint = did_you_mean(name, known.iter().copied());
        anyhow!("unknown rows \"{name}\"; known are {}.{hint}", known.join(", "))
    })
}

/// Returns the responses for rows with text responses, as in OpenRLHF. `instead`: the kinds for conversations.
///
/// # Errors
/// If a response is a conversation, since its text would mix the model's turns with tool results.
fn texts<'a>(responses: &'a ScoredResponses, instead: &str) -> Result<&'a ScoredResponses> {
    let conversations = responses.responses.iter().filter(|response| response.conversation.is_some()).count();
    ensure!(
        conversations == 0,
        "{conversations} responses are conversations with tools, users or environments (column \"{MESSAGES}\"), but these rows have text \
         responses; use {instead}, whose rows have messages"
    );
    Ok(responses)
}

fn best(responses: &ScoredResponses, columns: &ScoredColumns) -> SelectedRows {
    let rows = responses.by_prompt().iter().map(|group| columns.row(highest(group))).collect();
    SelectedRows { rows, left_out: vec![] }
}

/// Returns every response with a label, or with `only` just the good ones.
fn threshold(responses: &ScoredResponses, options: &SelectOptions, only: bool) -> Result<SelectedRows> {
    let min = options.threshold.ok_or_else(|| anyhow!("--threshold is missing: the smallest good score"))?;
    let is_good = |response: &&ScoredResponse| response.score >= min;
    if only {
        let rows: Vec<_> = responses.responses.iter().filter(is_good).map(|response| OURS.row(response)).collect();
        let below = responses.responses.len() - rows.len();
        return Ok(SelectedRows { rows, left_out: vec![(below, format!("responses with a score below {min}"))] });
    }
    let labelled = |response: &ScoredResponse| {
        let mut row = OURS.row(response);
        let score = row.remove("score");
        row.insert("label".into(), is_good(&response).into());
        row.extend(score.map(|score| ("score".to_owned(), score)));
        row
    };
    Ok(SelectedRows { rows: responses.responses.iter().map(labelled).collect(), left_out: vec![] })
}
