//! Boxed answers: the `\boxed{…}` around the final result in MATH and similar data sets.

/// Returns the content of the last box. If "\boxed " with a space occurs, returns the text between its last occurrence and the
/// next dollar sign. Same as `remove_boxed(last_boxed_only_string(text))` of verl's `math_reward.py`, with `None` where that
/// fails.
pub fn boxed_answer(text: &str) -> Option<&str> {
    if let Some((_, answer)) = text.rsplit_once("\\boxed ") {
        return answer.split('$').next();
    }
    let start = text.rfind("\\boxed").or_else(|| text.rfind("\\fbox"))?;
    let boxed = &text[start..=start + closing_brace(&text[start..])?];
    // As in verl, a box without a brace and an `\fbox` hide earlier boxes but yield no answer.
    boxed.strip_prefix("\\boxed{")?.strip_suffix('}')
}

/// Returns the byte offset of the first closing brace after which no brace is open.
pub fn closing_brace(text: &str) -> Option<usize> {
    let mut open = 0_i64;
    text.bytes().position(|byte| {
        open += i64::from(byte == b'{') - i64::from(byte == b'}');
        byte == b'}' && open == 0
    })
}
