//! The tokens that end a response.

use super::share::share_of;
use crate::check::Check;
use crate::evidence::{EndTokens, Evidence, PlanFacts, RunLibrary};
use crate::finding::Finding;
use crate::phase::BEFORE;

pub(super) const END_TOKEN: Check = Check {
    name: "end token",
    phases: BEFORE,
    reads: "tokens that end a response, the chat template's end of a turn, and settings about tokens",
    number: "share of responses that cannot end, or of answers without an end token",
    threshold: "responses that cannot end fail; answers without an end warn from 0.5",
    source: "runs with `ignore_eos=true`: every response is cut, and no group has a signal from step 3",
    meaning: "A response that cannot end runs into the limit, and a cut answer is rarely right.",
    remedy: "Name the token that ends a turn in actor_rollout_ref.rollout.stop_token_ids, and leave ignore_eos off.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::planned(
        RunLibrary::Verl,
        PlanFacts {
            ends: Some(EndTokens { generates: true, ignores_eos: true, ..EndTokens::default() }),
            ..PlanFacts::default()
        },
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let Some(ends) = &evidence.facts.plan.ends else { return Finding::not_applicable("the end tokens are unknown") };
    if ends.generates { of_generation(ends) } else { of_answers(ends) }
}

fn of_generation(ends: &EndTokens) -> Finding {
    let stops = ends.stops.join(", ");
    let rollout = "actor_rollout_ref.rollout";
    if ends.stops.is_empty() && !ends.has_stop_text {
        let why = if ends.ignores_eos { "ignore_eos is on" } else { "no token or text ends it" };
        return Finding::fail(1.0, format!("no response can end: {why}"))
            .advise(format!("Write {rollout}.ignore_eos=false, or name ends in {rollout}.stop_token_ids or {rollout}.stop."));
    }
    if ends.has_stop_text {
        return Finding::pass(0.0, "a text of the setting `stop` ends responses");
    }
    if ends.beyond_vocabulary.len() == ends.stops.len() {
        let tokens = ends.beyond_vocabulary.join(", ");
        return Finding::fail(1.0, format!("no response can end: the model has no output for {tokens}"))
            .advise("Take the tokenizer that belongs to the model, or name another end in its generation_config.json.");
    }
    if ends.are_forbidden {
        return Finding::fail(1.0, format!("no response can end: the settings about tokens forbid {stops}"))
            .advise(format!("Allow {stops} in {rollout}.allowed_token_ids, bad_words and logit_bias."));
    }
    let (least, most) = ends.limits;
    if least >= most {
        return Finding::fail(1.0, format!("every response is cut: it has at least {least} tokens and at most {most}"))
            .advise(format!("Lower {rollout}.min_tokens, or raise data.max_response_length."));
    }
    match &ends.turn_end {
        Some(turn) if !ends.stops_at_turn_end => Finding::fail(
            1.0,
            format!(
                "the chat template ends a turn with {turn}, and responses end with {stops}: the model does not stop after its turn"
            ),
        )
        .advise(format!("Add the id of {turn} to {rollout}.stop_token_ids, or to eos_token_id in generation_config.json.")),
        _ => Finding::pass(0.0, format!("responses end with {stops}")),
    }
}

fn of_answers(ends: &EndTokens) -> Finding {
    let (unended, all) = ends.unended;
    let share = share_of(unended, all);
    if share >= 0.5 {
        let sentence = format!("{unended} of {all} answers have no trained end token: the model does not learn to stop");
        return Finding::warn(share, sentence)
            .advise("Raise data.max_length above the longest row, and use a template or column that ends an answer.");
    }
    match &ends.turn_end {
        Some(turn) if !ends.stops_at_turn_end => Finding::warn(
            1.0,
            format!(
                "answers end with {turn}, and generation ends with {}: the trained model does not stop",
                ends.stops.join(", ")
            ),
        )
        .advise(format!("Name {turn} as eos_token_id in the model's generation_config.json.")),
        _ => Finding::pass(share, format!("{} of {all} answers have a trained end token", all - unended)),
    }
}
