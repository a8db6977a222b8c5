//! Sampled responses with words without meaning, to see whether length is paid.

use burnish_data::{Prompt, Tokenizer};
use burnish_doctor::LengthenedResponses;
use burnish_reward::{ResponseScore, Rewards};
use burnish_rollout::{Finish, Response};
use burnish_util::filler::filler;

use crate::trainer::sampling::scoring::{self, DecodedResponse};

/// Number of responses from each end of the scores.
const TRIED: usize = 8;
/// Words for one token, at most.
const LETTERS: usize = 8;

/// The samples: responses in groups of `n`, with their scores.
pub(super) struct Samples<'a, P> {
    pub(super) prompts: &'a [P],
    pub(super) responses: &'a [DecodedResponse],
    pub(super) scores: &'a [ResponseScore],
    pub(super) n: usize,
    /// Most tokens of a response.
    pub(super) limit: usize,
}

/// Scores the best and the worst responses again, with words up to the limit before the text and behind it; the higher score
/// counts. A response for which the functions fail or abstain does not count. Returns `None` without such a response.
pub(super) fn lengthened<P: std::ops::Deref<Target = Prompt>>(
    samples: &Samples<P>,
    tokenizer: &Tokenizer,
    rewards: &Rewards,
) -> Option<LengthenedResponses> {
    let finite = |score: &ResponseScore| score.score.map(f64::from).filter(|score| score.is_finite());
    let scored: Vec<(usize, f64)> =
        samples.scores.iter().enumerate().filter_map(|(i, score)| Some((i, finite(score)?))).collect();
    let range = scored.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (_, score)| (a.min(*score), b.max(*score)));
    let has_room = |i: usize| {
        let response = &samples.responses[i].response;
        response.finish != Finish::Length && !response.ids.is_empty() && 2 * response.ids.len() <= samples.limit
    };
    let mut roomy: Vec<(usize, f64)> = scored.into_iter().filter(|(i, _)| has_room(*i)).collect();
    roomy.sort_by(|a, b| a.1.total_cmp(&b.1));
    let again = |(i, alone): &(usize, f64)| {
        let (decoded, prompt) = (&samples.responses[*i], &samples.prompts[i / samples.n]);
        let longer = longer(decoded, tokenizer, samples.limit);
        let scores = longer.iter().filter_map(|longer| finite(&rewards.score(&scoring::input(prompt, longer, 0)).ok()?));
        scores.reduce(f64::max).map(|lengthened| (*alone, lengthened))
    };
    let worst: Vec<(f64, f64)> = roomy.iter().take(TRIED).filter_map(again).collect();
    let best: Vec<(f64, f64)> = roomy.iter().rev().take(TRIED).filter_map(again).collect();
    (!best.is_empty()).then_some(LengthenedResponses { best, worst, range, limit: samples.limit })
}

/// Returns a response with words before its text, and with words behind it. Their letters are as many as fit into the limit, at
/// the rate of this response.
fn longer(decoded: &DecodedResponse, tokenizer: &Tokenizer, limit: usize) -> [DecodedResponse; 2] {
    let ids = &decoded.response.ids;
    let room = limit - ids.len();
    let letters = (room * decoded.text.chars().count() / ids.len()).clamp(room, LETTERS * room);
    let words: String = filler(letters).chars().take(letters).collect();
    let of_words: Vec<u32> = match tokenizer.encode(&words) {
        Ok(of_words) if !of_words.is_empty() => of_words.into_iter().cycle().take(room).collect(),
        // The model has no token for these words.
        _ => ids.iter().copied().cycle().take(room).collect(),
    };
    let (last, body) = ids.split_last().map_or((vec![], &ids[..]), |(last, body)| (vec![*last], body));
    let with = |text: String, ids: Vec<u32>| DecodedResponse {
        raw: decoded.raw.replacen(&decoded.text, &text, 1),
        text,
        response: Response { ids, log_probs: vec![], rollout_log_probs: vec![], finish: decoded.response.finish },
        episode: None,
        prompt_text: None,
        pending: None,
    };
    [
        with(format!("{words}\n{}", decoded.text), [&of_words, ids].map(Vec::as_slice).concat()),
        with(format!("{}\n{words}", decoded.text), [body, &of_words, &last].concat()),
    ]
}
