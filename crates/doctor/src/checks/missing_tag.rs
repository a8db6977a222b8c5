//! A format reward that no response can earn, because the template writes its tag.

use crate::check::Check;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const MISSING_TAG: Check = Check {
    name: "tag of the template",
    phases: AFTER,
    reads: "the end of the chat template, stored responses, and `reward/NAME/mean` of functions with a format",
    number: "share of stored responses with the closing tag and without the opening one",
    threshold: "from 0.5 fails if a format function is 0 in all steps, else warns",
    source: "a run of TRL on a model whose template ends with `<think>`: the format reward is 0 at every step",
    meaning: "The template writes the opening tag itself, so no response has it, and a format reward stays 0.",
    remedy: "Let the reward put the tag before the response, or use a chat template without it.",
    example,
    judge,
};

fn example() -> Evidence {
    let mut evidence = Evidence::made_up(30, &[("reward/think_format_reward/mean", |_| 0.0)]);
    evidence.facts.template_tag = Some("<think>".to_owned());
    evidence.facts.responses = vec!["3 + 4 is 7.</think>7".to_owned(); 64];
    evidence
}

fn judge(evidence: &Evidence) -> Finding {
    let (Some(tag), responses) = (&evidence.facts.template_tag, &evidence.facts.responses) else {
        return Finding::not_applicable("no chat template is known that writes a tag");
    };
    if responses.is_empty() {
        return Finding::not_applicable("no responses are stored");
    }
    let closing = tag.replacen('<', "</", 1);
    let half = responses.iter().filter(|text| text.contains(&closing) && !text.contains(tag.as_str())).count();
    let share = half as f64 / responses.len() as f64;
    let names = evidence.rows.iter().flat_map(|row| row.values.keys());
    let is_format = |name: &&String| name.starts_with("reward/") && name.ends_with("/mean") && name.contains("format");
    let stays_zero = |name: &&String| evidence.series(name).iter().all(|(_, mean)| *mean == 0.0);
    let zero = names.filter(is_format).find(stays_zero);
    let sentence = format!("the template ends with {tag}; {half} of {} responses have {closing} and lack {tag}", responses.len());
    match zero {
        _ if share < 0.5 => Finding::pass(share, "responses have both tags, or none"),
        Some(name) => Finding::fail(share, format!("{sentence}, and {name} is 0 in all steps")),
        None => Finding::warn(share, sentence),
    }
}
