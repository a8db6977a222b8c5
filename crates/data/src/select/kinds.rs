//! What can be made of scored responses: a table of names, TRL's columns for our own, OpenRLHF's for the names of its processors.

use anyhow::{Result, anyhow, ensure};

use super::answers::{Answer, Answers};
use super::conditional::conditional;
use super::entry::{Kind, Made, Options};
use super::preferences::preferences;
use super::row::{Columns, OPENRLHF, OURS, highest};
use crate::conversations::MESSAGES;
use burnish_util::suggest::did_you_mean;

/// All ways to make rows.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "best",
        doc: "the best response to each prompt, of equals the first: prompt, completion, score, for trainer sft",
        reads: &[],
        make: |answers, _| Ok(best(answers, &OURS)),
    },
    Kind {
        name: "pairs",
        doc: "the best and the worst response to each prompt: prompt, chosen, rejected, their scores and margin, for trainer dpo and rm",
        reads: &["min_margin"],
        make: |answers, options| Ok(preferences(answers, options.min_margin, true)),
    },
    Kind {
        name: "threshold",
        doc: "every response whose score is at least --threshold: prompt, completion, score, for trainer sft",
        reads: &["threshold"],
        make: |answers, options| threshold(answers, options, true),
    },
    Kind {
        name: "unpaired",
        doc: "every response, with the label true if its score is at least --threshold: prompt, completion, label, score, for KTO",
        reads: &["threshold"],
        make: |answers, options| threshold(answers, options, false),
    },
    Kind {
        name: "rs",
        doc: "best under the name and with the columns of OpenRLHF's rejection sampling: input, output, reward",
        reads: &[],
        make: |answers, _| Ok(best(texts(answers, "best")?, &OPENRLHF)),
    },
    Kind {
        name: "iter_dpo",
        doc: "pairs with the columns of OpenRLHF's iterative DPO: prompt, chosen, chosen_reward, rejected, rejected_reward",
        reads: &["min_margin"],
        make: |answers, options| Ok(preferences(texts(answers, "pairs")?, options.min_margin, false)),
    },
    Kind {
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
pub fn find(name: &str) -> Result<&'static Kind> {
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
fn texts<'a>(answers: &'a Answers, instead: &str) -> Result<&'a Answers> {
    let talks = answers.answers.iter().filter(|answer| answer.talk.is_some()).count();
    ensure!(
        talks == 0,
        "{talks} responses are conversations with tools, users or environments (column \"{MESSAGES}\"), and these rows hold a response as \
         text; write {instead}, whose rows hold messages"
    );
    Ok(answers)
}

fn best(answers: &Answers, columns: &Columns) -> Made {
    let rows = answers.by_prompt().iter().map(|group| columns.row(highest(group))).collect();
    Made { rows, left_out: vec![] }
}

/// Every answer, or with `only` the good ones; without it, a column says which are good.
fn threshold(answers: &Answers, options: &Options, only: bool) -> Result<Made> {
    let least = options.threshold.ok_or_else(|| anyhow!("--threshold is missing: the least score that counts as good"))?;
    let is_good = |answer: &&Answer| answer.score >= least;
    if only {
        let rows: Vec<_> = answers.answers.iter().filter(is_good).map(|answer| OURS.row(answer)).collect();
        let below = answers.answers.len() - rows.len();
        return Ok(Made { rows, left_out: vec![(below, format!("responses whose score is below {least}"))] });
    }
    let labelled = |answer: &Answer| {
        let mut row = OURS.row(answer);
        let score = row.remove("score");
        row.insert("label".into(), is_good(&answer).into());
        row.extend(score.map(|score| ("score".to_owned(), score)));
        row
    };
    Ok(Made { rows: answers.answers.iter().map(labelled).collect(), left_out: vec![] })
}
