//! What can be made of scored responses: a table of names, TRL's columns for our own, OpenRLHF's for the names of its processors.

use anyhow::{Result, anyhow, ensure};

use super::conditional::conditional;
use super::entry::{RowKind, SelectOptions, SelectedRows};
use super::preferences::preferences;
use super::row::{Columns, OPENRLHF, OURS, highest};
use super::scored::{ScoredResponse, ScoredResponses};
use crate::files::conversations::MESSAGES;
use burnish_util::suggest::did_you_mean;

/// All ways to make rows.
pub static KINDS: &[RowKind] = &[
    RowKind {
        name: "best",
        doc: "the best response to each prompt, of equals the first: prompt, completion, score, for trainer sft",
        reads: &[],
        make: |answers, _| Ok(best(answers, &OURS)),
    },
    RowKind {
        name: "pairs",
        doc: "the best and the worst response to each prompt: prompt, chosen, rejected, their scores and margin, for trainer dpo and rm",
        reads: &["min_margin"],
        make: |answers, options| Ok(preferences(answers, options.min_margin, true)),
    },
    RowKind {
        name: "threshold",
        doc: "every response whose score is at least --threshold: prompt, completion, score, for trainer sft",
        reads: &["threshold"],
        make: |answers, options| threshold(answers, options, true),
    },
    RowKind {
        name: "unpaired",
        doc: "every response, with the label true if its score is at least --threshold: prompt, completion, label, score, for KTO",
        reads: &["threshold"],
        make: |answers, options| threshold(answers, options, false),
    },
    RowKind {
        name: "rs",
        doc: "best under the name and with the columns of OpenRLHF's rejection sampling: input, output, reward",
        reads: &[],
        make: |answers, _| Ok(best(texts(answers, "best")?, &OPENRLHF)),
    },
    RowKind {
        name: "iter_dpo",
        doc: "pairs with the columns of OpenRLHF's iterative DPO: prompt, chosen, chosen_reward, rejected, rejected_reward",
        reads: &["min_margin"],
        make: |answers, options| Ok(preferences(texts(answers, "pairs")?, options.min_margin, false)),
    },
    RowKind {
        name: "csft",
        doc: "every response, its score written into the prompt, for OpenRLHF's conditional SFT: input, output, reward",
        reads: &["reward_template", "normalize_reward"],
        make: |answers, options| conditional(texts(answers, "best, pairs, threshold or unpaired")?, options),
    },
];

/// Finds the way of that name.
///
/// # Errors
/// If there is none; the message names all.
pub fn find(name: &str) -> Result<&'static RowKind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let hint = did_you_mean(name, known.iter().copied());
        anyhow!("there are no rows \"{name}\" to select; there are {}.{hint}", known.join(", "))
    })
}

/// Returns the responses, for rows whose response is a text, as OpenRLHF has it. `instead`: what to make of conversations.
///
/// # Errors
/// If one is a conversation, of which the text would have what tools said among what the model said.
fn texts<'a>(answers: &'a ScoredResponses, instead: &str) -> Result<&'a ScoredResponses> {
    let talks = answers.answers.iter().filter(|answer| answer.talk.is_some()).count();
    ensure!(
        talks == 0,
        "{talks} responses are conversations with tools, users or environments (column \"{MESSAGES}\"), and these rows hold a response as \
         text; write {instead}, whose rows hold messages"
    );
    Ok(answers)
}

fn best(answers: &ScoredResponses, columns: &Columns) -> SelectedRows {
    let rows = answers.by_prompt().iter().map(|group| columns.row(highest(group))).collect();
    SelectedRows { rows, left_out: vec![] }
}

/// Every answer, or with `only` the good ones; without it, a column says which are good.
fn threshold(answers: &ScoredResponses, options: &SelectOptions, only: bool) -> Result<SelectedRows> {
    let least = options.threshold.ok_or_else(|| anyhow!("--threshold is missing: the least score that counts as good"))?;
    let is_good = |answer: &&ScoredResponse| answer.score >= least;
    if only {
        let rows: Vec<_> = answers.answers.iter().filter(is_good).map(|answer| OURS.row(answer)).collect();
        let below = answers.answers.len() - rows.len();
        return Ok(SelectedRows { rows, left_out: vec![(below, format!("responses whose score is below {least}"))] });
    }
    let labelled = |answer: &ScoredResponse| {
        let mut row = OURS.row(answer);
        let score = row.remove("score");
        row.insert("label".into(), is_good(&answer).into());
        row.extend(score.map(|score| ("score".to_owned(), score)));
        row
    };
    Ok(SelectedRows { rows: answers.answers.iter().map(labelled).collect(), left_out: vec![] })
}
