//! Groups of tokens: the places where two tokenizations of a text agree.

use std::ops::Range;

/// The tokens of two models that write the same part of a text, as ranges of each model's tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGroup {
    pub student: Range<usize>,
    pub teacher: Range<usize>,
}

/// The token of a group whose distribution is the group's. The probabilities of the other tokens are its factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenMerge {
    /// The distribution of the last token, times the probabilities of the tokens before it: the chain rule.
    Bayesian,
    /// The distribution of the first token, times the probabilities of the tokens after it.
    Observed,
}

impl TokenMerge {
    /// Returns the token whose distribution is read, and the tokens whose probabilities are its factor.
    ///
    /// A distribution belongs to the token that it predicts. TRL 1.16 reads for `observed` the row at the token's own position,
    /// which predicts the token after it: the first token of an answer is never compared there, and factors are the
    /// probabilities of tokens at the wrong place.
    pub fn parts(self, tokens: Range<usize>) -> (usize, Range<usize>) {
        match self {
            Self::Bayesian => (tokens.end - 1, tokens.start..tokens.end - 1),
            Self::Observed => (tokens.start, tokens.start + 1..tokens.end),
        }
    }
}

/// Groups the tokens of two tokenizations by the byte at which each token ends, ascending. `None`: the token ends within a
/// character, where no group ends. Tokens after the last common end are a group if both have some (TRL's
/// `_align_by_byte_offsets`).
pub fn by_byte_ends(student: &[Option<usize>], teacher: &[Option<usize>]) -> Vec<TokenGroup> {
    let mut groups = Vec::new();
    let (mut s, mut t, mut from) = (0, 0, (0, 0));
    while s < student.len() && t < teacher.len() {
        match (student[s], teacher[t]) {
            (None, _) => s += 1,
            (_, None) => t += 1,
            (Some(own), Some(other)) if own < other => s += 1,
            (Some(own), Some(other)) if own > other => t += 1,
            _ => {
                (s, t) = (s + 1, t + 1);
                groups.push(TokenGroup { student: from.0..s, teacher: from.1..t });
                from = (s, t);
            }
        }
    }
    let rest = TokenGroup { student: from.0..student.len(), teacher: from.1..teacher.len() };
    groups.extend((!rest.student.is_empty() && !rest.teacher.is_empty()).then_some(rest));
    groups
}

/// Pairs tokens by their position: the first with the first, up to the end of the shorter (the original ULD).
pub fn by_position(student: usize, teacher: usize) -> Vec<TokenGroup> {
    (0..student.min(teacher)).map(|i| TokenGroup { student: i..i + 1, teacher: i..i + 1 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(student: Range<usize>, teacher: Range<usize>) -> TokenGroup {
        TokenGroup { student, teacher }
    }

    #[test]
    fn groups_end_where_both_tokens_end() {
        let ends = |ends: &[usize]| ends.iter().map(|end| Some(*end)).collect::<Vec<_>>();
        assert_eq!(
            by_byte_ends(&ends(&[1, 3, 4, 6]), &ends(&[1, 2, 3, 6])),
            [group(0..1, 0..1), group(1..2, 1..3), group(2..4, 3..4)]
        );
        // A token without text, such as a mark, belongs to the group after it.
        assert_eq!(by_byte_ends(&ends(&[2, 2, 4]), &ends(&[2, 4])), [group(0..1, 0..1), group(1..3, 1..2)]);
        // At the end it is left out, unless both have such tokens.
        assert_eq!(by_byte_ends(&ends(&[2, 2]), &ends(&[2])), [group(0..1, 0..1)]);
        assert_eq!(by_byte_ends(&ends(&[2, 2]), &ends(&[2, 2])), [group(0..1, 0..1), group(1..2, 1..2)]);
        assert_eq!(by_byte_ends(&ends(&[1, 4]), &ends(&[2, 5])), [group(0..2, 0..2)]);
        assert!(by_byte_ends(&[], &ends(&[2])).is_empty());
    }

    /// Both tokenizers cut a character of four bytes, at other bytes.
    #[test]
    fn no_group_ends_within_a_character() {
        let (student, teacher) = ([None, None, Some(4), Some(5)], [None, Some(4), Some(5)]);
        assert_eq!(by_byte_ends(&student, &teacher), [group(0..3, 0..2), group(3..4, 2..3)]);
    }

    #[test]
    fn a_group_has_the_distribution_of_one_token_and_the_probabilities_of_the_others() {
        assert_eq!(TokenMerge::Bayesian.parts(3..6), (5, 3..5));
        assert_eq!(TokenMerge::Observed.parts(3..6), (3, 4..6));
        assert_eq!(TokenMerge::Bayesian.parts(3..4).1.len() + TokenMerge::Observed.parts(3..4).1.len(), 0);
        assert_eq!(by_position(2, 3), [group(0..1, 0..1), group(1..2, 1..2)]);
    }
}
