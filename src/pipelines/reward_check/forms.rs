//! Forms in which responses write their answer, one line each. Where no right response is known, the ground truth is written in
//! every form, and the form that scores highest makes the right responses.

/// Forms with `{}` for the answer, the plainest first.
pub(super) const FORMS: &[&str] = &[
    "{}",
    "{}.",
    "#### {}",
    "\\boxed{{}}",
    "Answer: {}",
    "The answer is {}",
    "The answer is {}.",
    "The final answer is: $\\boxed{{}}$.",
    "Final Answer: {}",
    "<answer>{}</answer>",
    "<think>Let me see.</think><answer>{}</answer>",
    "<think>\nLet me see.\n</think>\n<answer>\n{}\n</answer>",
    "<think>Let me see.</think>\n\\boxed{{}}",
    "<think>Let me see.</think>{}",
    "<think>Let me see.</think> <answer> \\boxed{{}} </answer>",
    "<reasoning>\nLet me see.\n</reasoning>\n<answer>\n{}\n</answer>\n",
    "<reasoning>Let me see.</reasoning>\n<SOLUTION>{}</SOLUTION>",
    "<start_working_out>Let me see.<end_working_out><SOLUTION>{}</SOLUTION>",
    "Let me see.\n</think>\n<answer>{}</answer>",
    "Let me see.\n</think>\n\\boxed{{}}",
    "{\"answer\": {}}",
    "{\"answer\": \"{}\"}",
    "```python\n{}\n```",
    "```json\n{}\n```",
    "**{}**",
    "({})",
    "[{}]",
];

/// Returns the form with an answer in it.
pub(super) fn filled(form: &str, answer: &str) -> String {
    form.replacen("{}", answer, 1)
}

/// The marks of common forms without content.
pub(super) const EMPTY_FORMS: &[&str] = &[
    "<think></think><answer></answer>",
    "<think>\n\n</think>\n<answer>\n\n</answer>",
    "<think> </think> <answer> </answer>",
    "<think>x</think><answer>x</answer>",
    "<reasoning>\n\n</reasoning>\n<answer>\n\n</answer>\n",
    "<think></think>\\boxed{}",
    "<answer></answer>",
    "\\boxed{}",
    "\\boxed{ }",
    "#### ",
    "Answer: ",
    "The answer is ",
    "```python\n```",
    "{}",
    "1. \n2. \n3. ",
];

/// Returns the marks of a response without the words between them: tags, boxes, hashes, fences, the phrase before the answer.
pub(super) fn marks(text: &str) -> String {
    use std::sync::LazyLock;

    use regex::Regex;
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)</?[a-z_]+>|<\|[a-z_]+\|>|\\boxed\{|####|```[a-z]*|(final )?answer\s*(is|:)+|\n")
            .expect("a constant pattern")
    });
    let mut found = String::new();
    for mark in MARK.find_iter(text) {
        found += mark.as_str();
        if mark.as_str().ends_with('{') {
            found += "}";
        }
    }
    if found.trim().is_empty() { String::new() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_what_is_left_without_words() {
        assert_eq!(marks("<think>40 plus 85</think>\n<answer>125</answer>"), "<think></think>\n<answer></answer>");
        assert_eq!(marks("It is \\boxed{125}."), "\\boxed{}");
        assert_eq!(marks("on the hill\nnear 40"), "");
        assert_eq!(filled("\\boxed{{}}", "7"), "\\boxed{7}");
    }
}
