//! Infinity in config.json. Python's json writes it as a bare word, which is not JSON; transformers 5 writes
//! `{"__float__": "Infinity"}`.

/// Returns the text of a config.json with each bare `Infinity` as transformers 5 writes it.
pub(crate) fn with_infinity(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let (mut rest, mut in_string) = (text, false);
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("Infinity").filter(|_| !in_string) {
            all.push_str(r#"{"__float__": "Infinity"}"#);
            rest = after;
            continue;
        }
        let escaped = rest.chars().nth(1).filter(|_| in_string && first == '\\');
        let (same, after) = rest.split_at(first.len_utf8() + escaped.map_or(0, char::len_utf8));
        in_string ^= first == '"';
        all.push_str(same);
        rest = after;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::with_infinity;

    #[test]
    fn only_bare_words_are_replaced() {
        let text = r#"{"a": [0.0, Infinity], "Infinity": "\"Infinity", "é\\": Infinity}"#;
        let expected = r#"{"a": [0.0, {"__float__": "Infinity"}], "Infinity": "\"Infinity", "é\\": {"__float__": "Infinity"}}"#;
        assert_eq!(with_infinity(text), expected);
    }
}
