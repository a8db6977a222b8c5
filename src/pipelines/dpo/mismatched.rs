//! KTO's z: the mean log-ratio of policy and reference for responses to other prompts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::example::{PreferenceExample, split};
use super::reference::Reference;
use crate::pipelines::stage::StageBatch;
use burnish_algorithm::preference::kl;
use burnish_algorithm::rounding::settled;
use burnish_data::examples::Unpaired;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, Sequence};

/// Computes KTO's z over a whole batch: the prompt of each row with the response of its partner row. Collective: each rank
/// compares the rows of its slices.
pub(super) fn z(batch: &StageBatch<PreferenceExample>, reference: &Reference, model: &CausalLm, ranks: &Ranks) -> f64 {
    let rows = rows(batch);
    let count = rows.len();
    let before = || (0..count).map(|i| (i + count - 1) % count).collect();
    let partners: Vec<usize> = partners(count, |i, j| rows[i].shares_prompt(rows[j])).unwrap_or_else(before);
    let sequence = |i: usize| {
        let (prompt, response) = rows[i].mismatched(rows[partners[i]]);
        Sequence::new(prompt, response)
    };
    let ratios = batch.over_slices(ranks, |slice| {
        let sequences: Vec<Sequence> = slice.iter().map(|&i| sequence(i)).collect();
        let mut ratios = BTreeMap::new();
        for micro in batch.cut.micro_batches(&sequences) {
            let of_micro: Vec<Sequence> = micro.iter().map(|&at| sequences[at]).collect();
            let stats = model.frozen().token_stats(&of_micro, 1.0, None);
            for (&at, tokens) in micro.iter().zip(split(&of_micro, &stats.log_prob)) {
                let policy: f64 = tokens.iter().map(|&lp| f64::from(lp)).sum();
                ratios.insert(slice[at], policy - settled(policy, reference.mismatched(sequences[at]), tokens.len()));
            }
        }
        ratios
    });
    // Ordered by row, so that the mean does not depend on slices and micro-batches.
    let ratios: BTreeMap<usize, f64> = ratios.into_iter().flatten().collect();
    kl(ratios.into_values())
}

/// Warns once, by `warned`, about a batch with a single prompt.
pub(crate) fn warn_of_one_prompt(batch: &StageBatch<PreferenceExample>, warned: &AtomicBool) {
    let rows = rows(batch);
    if rows.windows(2).any(|two| !two[0].shares_prompt(two[1])) || warned.swap(true, Ordering::Relaxed) {
        return;
    }
    let (of, remedy) = match batch.training {
        true => ("a batch", "data.shuffle=true or a larger data.train_batch_size brings several prompts into a batch"),
        false => ("validation", "data.val_files with several prompts, or a larger data.val_max_samples, measure it"),
    };
    tracing::warn!(
        "step {}: all responses of {of} are to one prompt, so kl is measured on responses to that prompt, not to another; {remedy}",
        batch.step
    );
}

fn rows<'a>(batch: &StageBatch<'a, PreferenceExample>) -> Vec<&'a Unpaired> {
    batch.examples.iter().map(|example| example.labelled()).collect()
}

/// Returns, for each of `count` rows, another row whose prompt is not the `same`; `None` if all rows have one prompt. The last
/// row precedes the first.
///
/// The partner is the previous row, as in TRL. If neighbours share a prompt, the distance is the length of the longest run of one
/// prompt. Chosen responses then get chosen partners, rejected ones get rejected partners, and every response is used about
/// equally often in any order of rows. If that row has the same prompt too, the partner is the nearest row before it with another
/// prompt.
fn partners(count: usize, same: impl Fn(usize, usize) -> bool) -> Option<Vec<usize>> {
    let before = |i: usize, by: usize| (i + count - by) % count;
    let first = (0..count).find(|&i| !same(i, before(i, 1)))?;
    let mut nearest: Vec<usize> = (0..count).map(|i| before(i, 1)).collect();
    let (mut run, mut longest) = (0, 0);
    for i in (first..first + count).map(|i| i % count) {
        let neighbour = before(i, 1);
        if same(i, neighbour) {
            nearest[i] = nearest[neighbour];
            run += 1;
        } else {
            run = 1;
        }
        longest = longest.max(run);
    }
    let partner = |i: usize| {
        let partner = before(i, longest);
        if same(i, partner) { nearest[partner] } else { partner }
    };
    Some((0..count).map(partner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is a prompt.
    #[test]
    fn partners_have_another_prompt_in_any_order() {
        for (prompts, expected) in [
            // If no neighbours share a prompt, the previous row is the partner.
            ("abcd", Some(vec![3, 0, 1, 2])),
            ("abab", Some(vec![3, 0, 1, 2])),
            // Pairs: chosen responses get chosen partners, rejected ones rejected partners.
            ("aabbcc", Some(vec![4, 5, 0, 1, 2, 3])),
            // The last row and the first are neighbours too.
            ("abca", Some(vec![2, 3, 0, 1])),
            ("aaabbc", Some(vec![3, 4, 5, 0, 1, 2])),
            // More than half of the rows have the same prompt.
            ("aaab", Some(vec![3, 3, 3, 0])),
            ("aabaca", Some(vec![2, 4, 5, 4, 1, 2])),
            ("aaa", None),
            ("a", None),
        ] {
            let letters = prompts.as_bytes();
            let partners = partners(letters.len(), |i, j| letters[i] == letters[j]);
            assert_eq!(partners, expected, "{prompts}");
            let own = partners.iter().flatten().enumerate().find(|(i, partner)| letters[*i] == letters[**partner]);
            assert_eq!(own, None, "{prompts}");
        }
    }
}
