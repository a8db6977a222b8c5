//! Inputs that are almost valid: a seed after some edits.

use proptest::prelude::*;

/// Maximum length of an input.
const LONGEST: usize = 1 << 20;

/// A seed with edits, which shrink to fewer and smaller ones.
#[derive(Clone, Debug)]
pub(crate) struct Edits {
    seed: usize,
    edits: Vec<Edit>,
}

/// One edit. Places are fractions of the length, so that an edit keeps its meaning while others are removed.
#[derive(Clone, Debug)]
enum Edit {
    Flip {
        at: u16,
        bit: u8,
    },
    Set {
        at: u16,
        byte: u8,
    },
    Delete {
        at: u16,
        length: u16,
    },
    Truncate {
        at: u16,
    },
    /// Inserts one of the target's words, or of [`NUMBERS`], this many times.
    Insert {
        at: u16,
        word: usize,
        times: u16,
    },
    /// Inserts a piece of the input itself, this many times.
    Repeat {
        at: u16,
        length: u8,
        times: u16,
    },
    /// Replaces a piece of this seed by a piece of another.
    Splice {
        at: u16,
        seed: usize,
        from: u16,
        length: u16,
    },
    /// Replaces a number in the text by another.
    Number {
        which: u8,
        number: usize,
    },
}

/// Numbers at the edges of types.
pub(crate) const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "-0",
    "127",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1",
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
];

/// Mostly few edits and few repetitions; sometimes thousands of copies.
pub(crate) fn edits(seeds: usize, words: usize) -> impl Strategy<Value = Edits> {
    let times = || prop_oneof![8 => 1..4u16, 2 => 1..300u16, 1 => 1..30_000u16];
    let (at, word) = (any::<u16>, move || 0..words + NUMBERS.len());
    let edit = prop_oneof![
        2 => (at(), 0..8u8).prop_map(|(at, bit)| Edit::Flip { at, bit }),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Set { at, byte }),
        2 => (at(), 0..200u16).prop_map(|(at, length)| Edit::Delete { at, length }),
        1 => at().prop_map(|at| Edit::Truncate { at }),
        4 => (at(), word(), times()).prop_map(|(at, word, times)| Edit::Insert { at, word, times }),
        2 => (at(), any::<u8>(), times()).prop_map(|(at, length, times)| Edit::Repeat { at, length, times }),
        2 => (at(), 0..seeds, at(), 0..400u16).prop_map(|(at, seed, from, length)| Edit::Splice { at, seed, from, length }),
        4 => (any::<u8>(), 0..NUMBERS.len()).prop_map(|(which, number)| Edit::Number { which, number }),
    ];
    (0..seeds, prop::collection::vec(edit, 0..6)).prop_map(|(seed, edits)| Edits { seed, edits })
}

impl Edits {
    /// The input. The edits are made one after another.
    pub(crate) fn apply(&self, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
        let mut text = seeds[self.seed].clone();
        for edit in &self.edits {
            edit.apply(&mut text, seeds, words);
            text.truncate(LONGEST);
        }
        text
    }
}

impl Edit {
    fn apply(&self, text: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
        let place = |at: u16, length: usize| usize::from(at) * length / 65_536;
        let piece = |of: &[u8], at: u16, length: usize| {
            let start = place(at, of.len());
            start..(start + length).min(of.len())
        };
        match *self {
            Self::Flip { at, bit } => {
                let at = place(at, text.len());
                text.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
            }
            Self::Set { at, byte } => {
                let at = place(at, text.len());
                text.iter_mut().skip(at).take(1).for_each(|old| *old = byte);
            }
            Self::Delete { at, length } => {
                text.drain(piece(text, at, length.into()));
            }
            Self::Truncate { at } => text.truncate(place(at, text.len())),
            Self::Insert { at, word, times } => {
                let word = words.get(word).copied().unwrap_or_else(|| NUMBERS[word - words.len()]);
                let times = usize::from(times).min(LONGEST / word.len().max(1));
                let at = place(at, text.len() + 1);
                text.splice(at..at, word.repeat(times).into_bytes());
            }
            Self::Repeat { at, length, times } => {
                let piece = text[piece(text, at, length.into())].to_vec();
                let times = usize::from(times).min(LONGEST / piece.len().max(1));
                let at = place(at, text.len());
                text.splice(at..at, piece.repeat(times));
            }
            Self::Splice { at, seed, from, length } => {
                let other = &seeds[seed];
                let piece_of_other = other[piece(other, from, length.into())].to_vec();
                text.splice(piece(text, at, length.into()), piece_of_other);
            }
            Self::Number { which, number } => {
                let starts: Vec<usize> = (0..text.len())
                    .filter(|&i| text[i].is_ascii_digit() && (i == 0 || !text[i - 1].is_ascii_alphanumeric()))
                    .collect();
                let Some(&start) = starts.get(usize::from(which) % starts.len().max(1)) else { return };
                let end =
                    text[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |length| start + length);
                text.splice(start..end, NUMBERS[number].bytes());
            }
        }
    }
}
