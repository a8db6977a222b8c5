//! Rules about single tokens, the same for every response of a request.

/// Allowed tokens, forbidden sequences of tokens, and biases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenRules {
    /// The only tokens that may be drawn, each once; `None` allows all.
    pub allowed: Option<Vec<u32>>,
    /// Sequences whose last token is forbidden if the response ends with the other tokens. No sequence is empty.
    pub bad_words: Vec<Vec<u32>>,
    /// Tokens and the values that are added to their logits.
    pub biases: Vec<(u32, f32)>,
}

impl TokenRules {
    /// Returns the tokens that would complete a bad word after these tokens of a response. As in vLLM, the prompt does not count.
    pub fn forbidden_after<'a>(&'a self, response: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        let sequences = self.bad_words.iter().filter_map(|word| word.split_last());
        sequences.filter(|(_, others)| response.ends_with(others)).map(|(last, _)| *last)
    }

    /// Returns true if some token can always be drawn from a vocabulary of this size. It must be allowed, must not end a bad
    /// word, and must differ from these stop tokens, which `min_tokens` forbids at first.
    pub fn leave_a_token(&self, vocab: usize, stops: &[u32]) -> bool {
        let ends_a_word = |token: u32| self.bad_words.iter().any(|word| word.last() == Some(&token));
        let is_free = |token: u32| !stops.contains(&token) && !ends_a_word(token);
        match &self.allowed {
            Some(allowed) => allowed.iter().any(|&token| is_free(token)),
            None => (0..vocab as u32).any(is_free),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_word_is_not_completed() {
        let rules = TokenRules { bad_words: vec![vec![5], vec![1, 2], vec![1, 2, 3]], ..TokenRules::default() };
        let after = |response: &[u32]| rules.forbidden_after(response).collect::<Vec<_>>();
        assert_eq!(after(&[]), [5]);
        assert_eq!(after(&[4, 1]), [5, 2]);
        assert_eq!(after(&[1, 2]), [5, 3]);
        assert_eq!(after(&[2, 1, 3]), [5]);
    }

    #[test]
    fn a_token_is_left_or_not() {
        let words = TokenRules { bad_words: vec![vec![0], vec![7, 1]], ..TokenRules::default() };
        assert!(words.leave_a_token(3, &[]) && !words.leave_a_token(3, &[2]) && !words.leave_a_token(2, &[]));
        let few = TokenRules { allowed: Some(vec![1, 2]), ..words };
        assert!(few.leave_a_token(9, &[1]) && !few.leave_a_token(9, &[2]));
    }
}
