//! Prompts that are plain text, although the model has a chat template.

use crate::check::Check;
use crate::evidence::{Evidence, KnownPrompt};
use crate::finding::Finding;
use crate::phase::ALWAYS;

pub(super) const TEXT_PROMPT: Check = Check {
    name: "text prompt of a chat model",
    phases: ALWAYS,
    reads: "prompts of training, and the model's chat template",
    number: "share of prompts that are plain text",
    threshold: "above 0 warns, from 0.2 fails; a text that holds marks of a template is not counted",
    source: "runs of TRL and burnish: with text prompts alone no group has a signal from step 3; with one in two, the metrics look sound",
    meaning: "The model continues a bare text, where it was trained on turns of a conversation.",
    remedy: "Give each prompt as messages, or put the text into one message of the user.",
    example,
    judge,
};

fn example() -> Evidence {
    let mut evidence = Evidence::made_up(30, &[]);
    let prompt = |i: u64| KnownPrompt { text: format!("{i}*17="), is_plain_text: i.is_multiple_of(5) };
    evidence.facts.has_chat_template = Some(true);
    evidence.facts.prompts = (250..500).map(prompt).collect();
    evidence
}

/// Beginnings of the marks that templates write around a turn.
const MARKS: &[&str] = &["<|", "[INST]", "<start_of_turn>", "<｜", "### ", "\nUser:", "\nHuman:"];

fn judge(evidence: &Evidence) -> Finding {
    let prompts = &evidence.facts.prompts;
    match evidence.facts.has_chat_template {
        None => return Finding::not_applicable("the model's chat template is unknown"),
        Some(false) => return Finding::not_applicable("the model has no chat template"),
        Some(true) if prompts.is_empty() => return Finding::not_applicable("the prompts are unknown"),
        Some(true) => {}
    }
    let bare: Vec<&KnownPrompt> = prompts.iter().filter(|prompt| is_bare(prompt)).collect();
    let share = bare.len() as f64 / prompts.len() as f64;
    let Some(first) = bare.first() else {
        return Finding::pass(share, format!("all {} prompts are conversations", prompts.len()));
    };
    let shown: String = first.text.chars().take(40).collect();
    let sentence =
        format!("{} of {} prompts are plain text, and this is a chat model: it reads {shown:?}", bare.len(), prompts.len());
    if share >= 0.2 { Finding::fail(share, sentence) } else { Finding::warn(share, sentence) }
}

fn is_bare(prompt: &KnownPrompt) -> bool {
    prompt.is_plain_text && !MARKS.iter().any(|mark| prompt.text.contains(mark))
}
