//! Words without meaning, which make a text longer and no better.

const WORDS: &[&str] = &[
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "adipiscing",
    "elit",
    "sed",
    "do",
    "eiusmod",
    "tempor",
    "incididunt",
    "ut",
    "labore",
    "et",
    "dolore",
    "magna",
    "aliqua",
    "enim",
];

/// Returns this number of words.
pub fn filler(words: usize) -> String {
    WORDS.iter().copied().cycle().take(words).collect::<Vec<_>>().join(" ")
}
