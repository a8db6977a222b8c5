//! Texts without an answer, and the texts of a ground truth.

use serde_json::Value;

use burnish_util::boxed::closing_brace;

/// Returns the answer at the end of a written solution: behind `####`, or in the last `\boxed{}`.
fn final_answer(text: &str) -> Option<String> {
    if let Some((_, answer)) = text.rsplit_once("####") {
        return Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty());
    }
    let (_, inside) = text.rsplit_once("\\boxed{")?;
    let boxed = format!("\\boxed{{{inside}");
    let end = closing_brace(&boxed)?;
    Some(boxed["\\boxed{".len()..end].trim().to_owned()).filter(|answer| !answer.is_empty())
}

/// Returns the texts that a ground truth may stand for. A written solution gives its final answer first, then itself.
pub(super) fn truth_texts(truth: &Value) -> Vec<String> {
    let texts = match truth {
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => final_answer(text).into_iter().chain([text.trim().to_owned()]).collect(),
        Value::Number(_) | Value::Bool(_) => vec![truth.to_string()],
        Value::Array(items) => items.first().map(truth_texts).unwrap_or_default(),
        Value::Object(fields) => {
            let known = ["target", "ground_truth", "answer", "solution"].iter().find_map(|name| fields.get(*name));
            known.map_or_else(|| vec![truth.to_string()], truth_texts)
        }
        Value::Null => Vec::new(),
    };
    let mut distinct: Vec<String> = Vec::new();
    texts.into_iter().for_each(|text| {
        if !distinct.contains(&text) {
            distinct.push(text)
        }
    });
    distinct
}

/// Returns the first and the last byte of the last occurrence of `part` as whole words.
pub(super) fn last_as_words(text: &str, part: &str) -> Option<(usize, usize)> {
    if part.is_empty() {
        return None;
    }
    let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let edges = (in_word(part.chars().next()), in_word(part.chars().next_back()));
    let whole = |start: usize| {
        let (before, after) = (text[..start].chars().next_back(), text[start + part.len()..].chars().next());
        !(edges.0 && in_word(before) || edges.1 && in_word(after))
    };
    text.rmatch_indices(part).map(|(start, _)| start).find(|start| whole(*start)).map(|start| (start, start + part.len()))
}
