//! Answers in a box: what MATH and its like put around the end result of a solution.

/// The content of the last box. If "\boxed " with a space occurs anywhere, the text after its last occurrence up to a dollar
/// sign. The same as `remove_boxed(last_boxed_only_string(text))` of verl's `math_reward.py`, with `None` where that fails.
pub fn boxed_answer(text: &str) -> Option<&str> {
    if let Some((_, answer)) = text.rsplit_once("\\boxed ") {
        return answer.split('$').next();
    }
    let start = text.rfind("\\boxed").or_else(|| text.rfind("\\fbox"))?;
    let boxed = &text[start..=start + closing_brace(&text[start..])?];
    // A box without its brace and an \fbox are found, but no answer is taken from them.
    boxed.strip_prefix("\\boxed{")?.strip_suffix('}')
}

/// The byte offset of the first closing brace after which no brace is open.
pub fn closing_brace(text: &str) -> Option<usize> {
    let mut open = 0_i64;
    text.bytes().position(|byte| {
        open += i64::from(byte == b'{') - i64::from(byte == b'}');
        byte == b'}' && open == 0
    })
}
