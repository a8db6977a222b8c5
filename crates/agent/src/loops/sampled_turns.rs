//! The turns that were sampled for a custom loop, and their places in the loop's output. A token is trained only if the model
//! sampled it there, after the same tokens.

use burnish_rollout::Response;

/// The turns of a conversation, in the order of sampling.
#[derive(Default)]
pub(crate) struct SampledTurns {
    /// For each turn: the ids before it, and the turn.
    turns: Vec<(Vec<u32>, Response)>,
}

/// The source of a sampled token: a turn, and the index in that turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenSource {
    pub turn: usize,
    pub at: usize,
}

impl SampledTurns {
    /// Adds a turn that was sampled after these ids.
    pub(super) fn add(&mut self, ids: Vec<u32>, turn: Response) {
        self.turns.push((ids, turn));
    }

    /// Returns the number of turns.
    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns the ids before the first turn.
    pub(super) fn first(&self) -> Option<&[u32]> {
        self.turns.first().map(|(ids, _)| ids.as_slice())
    }

    /// Returns all ids up to the end of the last turn.
    pub(super) fn last(&self) -> Option<Vec<u32>> {
        self.turns.last().map(|(ids, turn)| [&ids[..], &turn.ids].concat())
    }

    /// Returns a turn by its number, from 0.
    pub(super) fn turn(&self, turn: usize) -> Option<&Response> {
        self.turns.get(turn).map(|(_, turn)| turn)
    }

    /// For each id of a response, returns its source: a turn that sampled it after exactly the prompt and the preceding ids.
    /// Among turns after the same ids, the turn with the longest common prefix is used; among nested turns, the last.
    pub(super) fn sources(&self, prompt: &[u32], ids: &[u32]) -> Vec<Option<TokenSource>> {
        let all_ids = [prompt, ids].concat();
        // For each matching turn: its start, the number of common tokens, and its number.
        let mut there: Vec<(usize, usize, usize)> = Vec::new();
        for (nth, (before, turn)) in self.turns.iter().enumerate() {
            if let Some(rest) = all_ids.strip_prefix(&before[..]) {
                let common = rest.iter().zip(&turn.ids).take_while(|(known, sampled)| known == sampled).count();
                there.push((before.len(), common, nth));
            }
        }
        there.sort_unstable();
        let mut sources = vec![None; ids.len()];
        for (begin, common, nth) in there {
            for at in 0..common {
                if let Some(place) = (begin + at).checked_sub(prompt.len()).and_then(|place| sources.get_mut(place)) {
                    *place = Some(TokenSource { turn: nth, at });
                }
            }
        }
        sources
    }

    /// Returns true if a turn contains these tokens anywhere.
    pub(crate) fn sampled_anywhere(&self, ids: &[u32]) -> bool {
        !ids.is_empty() && self.turns.iter().any(|(_, turn)| turn.ids.windows(ids.len()).any(|part| part == ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnish_rollout::Finish;

    fn turn(ids: &[u32]) -> Response {
        Response {
            ids: ids.to_vec(),
            log_probs: vec![0.0; ids.len()],
            rollout_log_probs: vec![0.0; ids.len()],
            finish: Finish::Stop,
        }
    }

    #[test]
    fn tokens_are_found_where_they_were_sampled() {
        let mut served = SampledTurns::default();
        served.add(vec![1, 2], turn(&[3, 4, 5]));
        served.add(vec![1, 2], turn(&[3, 4, 6]));
        // The match begins after a part of the first turn and inserted text.
        served.add(vec![1, 2, 3, 4, 9], turn(&[7, 8]));
        let found = |ids: &[u32]| -> Vec<Option<(usize, usize)>> {
            served.sources(&[1, 2], ids).into_iter().map(|one| one.map(|one| (one.turn, one.at))).collect()
        };
        assert_eq!(found(&[3, 4, 6]), [Some((1, 0)), Some((1, 1)), Some((1, 2))]);
        assert_eq!(found(&[3, 4, 9, 7, 1]), [Some((1, 0)), Some((1, 1)), None, Some((2, 0)), None]);
        // Different ids come before this turn, so it was not sampled at this place.
        assert_eq!(found(&[3, 9, 7, 8]), [Some((1, 0)), None, None, None]);
        // A prompt that contains a part of a turn.
        assert_eq!(
            served.sources(&[1, 2, 3], &[4, 5]),
            [Some(TokenSource { turn: 0, at: 1 }), Some(TokenSource { turn: 0, at: 2 })]
        );
        assert!(served.sampled_anywhere(&[7, 8]) && !served.sampled_anywhere(&[8, 7]) && !served.sampled_anywhere(&[]));
        assert_eq!(served.last().unwrap(), [1, 2, 3, 4, 9, 7, 8]);
    }
}
