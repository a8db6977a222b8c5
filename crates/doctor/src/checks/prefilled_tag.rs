//! A tag that the prompt already has, and that a reward function looks for in the response.

use crate::check::Check;
use crate::evidence::{Evidence, PlanFacts, RunLibrary, TagInPrompts};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const PREFILLED_TAG: Check = Check {
    name: "prefilled tag",
    phases: BEFORE,
    reads: "ends of the rendered prompts, and the tags that reward functions expect",
    number: "share of prompts that end with the tag of a reward function",
    threshold: "from 0.5 fails if the reward has no other function with weight; otherwise above 0 warns",
    source: "runs on a model whose template ends with `<think>`: the format reward alone has no signal from step 3",
    meaning: "The chat template writes the tag itself, so no response has it, and the format reward stays 0.",
    remedy: "Tell the reward function that the prompt has the tag, or use a chat template without it.",
    example,
    judge,
};

fn example() -> Evidence {
    let tag = TagInPrompts {
        function: "think_format_reward".to_owned(),
        tag: "<think>".to_owned(),
        is_prefilled: false,
        is_guess: false,
        ending: 256,
        all: 256,
    };
    let mut evidence = Evidence::planned(RunLibrary::Verl, PlanFacts { tags: vec![tag], ..PlanFacts::default() });
    evidence.functions = vec![("think_format_reward".to_owned(), 1.0)];
    evidence
}

fn judge(evidence: &Evidence) -> Finding {
    let tags = &evidence.facts.plan.tags;
    let Some(tag) = tags.iter().max_by_key(|tag| wrong(tag)) else {
        return Finding::not_applicable("no reward function expects a tag at the beginning of a response");
    };
    let TagInPrompts { function, tag: text, all, ending, is_prefilled, is_guess } = tag;
    let share = wrong(tag) as f64 / (*all).max(1) as f64;
    if wrong(tag) == 0 {
        return Finding::pass(0.0, format!("{function} and the prompts agree about {text}"));
    }
    let key = format!("reward.function_kwargs.{function}.prefilled");
    if *is_prefilled {
        let sentence = format!("{} of {all} prompts do not end with {text}, and {key} puts it before every response", wrong(tag));
        return Finding::warn(share, sentence).advise(format!("Leave {key} out, or use a template that writes {text}."));
    }
    if *is_guess {
        let sentence =
            format!("{ending} of {all} prompts end with {text}, which the code of {function} names: responses lack it");
        return Finding::warn(share, sentence).advise(format!(
            "If {function} looks for {text} in the response, let it put the tag before the response, or change the template."
        ));
    }
    let weighted = evidence.functions.iter().filter(|(_, weight)| *weight != 0.0).count();
    let sentence =
        format!("{ending} of {all} prompts end with {text}, and {function} wants it in the response: it stays 0 for ever");
    let found = if weighted <= 1 && share >= 0.5 { Finding::fail(share, sentence) } else { Finding::warn(share, sentence) };
    found.advise(format!("Write +{key}=true, which counts the tag of the prompt, or use a chat template without it."))
}

/// Returns the number of prompts with which the function disagrees.
fn wrong(tag: &TagInPrompts) -> usize {
    if tag.is_prefilled { tag.all - tag.ending } else { tag.ending }
}
