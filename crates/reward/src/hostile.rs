//! Stress tests with degenerate, repetitive responses: 100,000 copies of each text that a scorer might parse as nesting. Scorers
//! run on threads with stacks of 2 MB, and a stack overflow cannot be caught. So every scorer gets every text on a stack of half
//! that size.

use std::thread;

use serde_json::{Value, json};

use super::function::Function;
use super::functions::all;
use super::math_verify::MathVerify;
use super::score_input::ScoreInput;
use super::services::Services;

const MANY: usize = 100_000;
const STACK: usize = 1 << 20;

/// Nested texts: (opening, middle, closing).
const NESTINGS: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{", "1", "}"),
    ("(1+", "1", ")"),
    ("(x*", "x", ")"),
    ("1/(", "2", ")"),
    ("-", "1", ""),
    ("+", "1", ""),
    ("- ", "x", ""),
    ("2**", "2", ""),
    ("x^", "x", ""),
    ("1+", "1", ""),
    ("x*", "x", ""),
    ("1,", "1", ""),
    ("(1,", "1", ")"),
    ("[1,", "1", "]"),
    ("1,111", "1", ""),
    ("(", "\\pi", ")"),
    ("[", "\\pi", "]"),
    ("-", "\\pi", ""),
    ("2**", "\\pi", ""),
    ("\\pi", "", ""),
    ("\\frac{", "1", "}{2}"),
    ("\\frac", "1", ""),
    ("\\sqrt{", "1", "}"),
    ("\\sqrt", "1", ""),
    ("\\text{", "1", "}"),
    ("\\mathrm{", "1", "}"),
    ("\\mbox{", "1", "}"),
    ("\\overline{", "1", "}"),
    ("\\boxed{", "1", "}"),
    ("\\fbox{", "1", "}"),
    ("\\left(", "1", "\\right)"),
    ("\\left[", "1", "\\right]"),
    ("\\begin{pmatrix}", "1", "\\end{pmatrix}"),
    ("Point(", "1", ")"),
    ("<think>", "1", "</think>"),
    ("<answer>", "1", "</answer>"),
    ("```python\n", "print(1)", "\n```"),
    ("Answer: ", "1", ""),
    ("#### ", "1", ""),
    ("\u{0660}", "1", ""),
    ("a ", "1", ""),
    ("\n", "1", ""),
];

/// Text before and after: the places in which most scorers look for an answer.
const FRAMES: [(&str, &str); 2] = [("", ""), ("<think></think>\\boxed{", "}")];

/// Ground truths of every kind that scorers compare with.
fn truths() -> Vec<Value> {
    // The deepest nesting that an answer of 1,000 characters allows; each level costs one round of removing brackets.
    let nested = nested(&("(", "2.0", ")"), 495);
    let texts = ["\\frac{1}{2}", "12", "2\\sqrt{3}", "[1, 2)", "\\pi", "x+1", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", &nested];
    texts.map(Value::from).into_iter().chain([json!({"target": ["1"]})]).collect()
}

fn nested((open, middle, close): &(&str, &str, &str), count: usize) -> String {
    format!("{}{middle}{}", open.repeat(count), close.repeat(count))
}

/// Calls every scorer and function that needs no sandbox, with the text in these frames; the results are ignored.
fn score_all(text: &str, frames: &[(&str, &str)], truth: &Value, services: &Services) {
    let ids: Vec<u32> = text.bytes().map(u32::from).collect();
    let sandboxed = |name: &str| name == "sandbox_fusion";
    let settings = |function: &Function| function.settings(&Default::default()).unwrap_or_default();
    for (before, after) in frames {
        let solution = format!("{before}{text}{after}");
        for function in all().filter(|function| !sandboxed(function.name)) {
            let input = ScoreInput {
                data_source: "openai/gsm8k",
                solution: &solution,
                raw: &solution,
                token_ids: Some(&ids),
                ground_truth: truth,
                settings: &settings(&function),
                services,
                ..Default::default()
            };
            _ = (function.run)(&input);
        }
    }
}

#[test]
fn no_response_ends_the_process() {
    // A stand-in for math-verify that always answers "not equal".
    let services = Services { sandbox: None, math_verify: Some(MathVerify::new(|_, _| Ok(json!({"value": {"score": 0.0}})))) };
    let work = || {
        let truths = truths();
        for nesting in NESTINGS {
            score_all(&nested(nesting, MANY), &FRAMES[1..], &truths[0], &services);
            score_all(&nesting.0.repeat(MANY), &FRAMES[..1], &truths[0], &services);
            // verl's prime_math looks only at the first 1,000 characters when it compares parts of answers.
            let short = nested(nesting, 990 / (nesting.0.len() + nesting.2.len()));
            truths.iter().for_each(|truth| score_all(&short, &FRAMES, truth, &services));
        }
    };
    thread::scope(|scope| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).unwrap().join().unwrap());
}
