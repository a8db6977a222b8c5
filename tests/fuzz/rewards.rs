//! Rewards: what a model wrote, read by every scorer and function that runs in this process.

use std::sync::LazyLock;

use burnish::reward::math_verify::MathVerify;
use burnish::reward::{FUNCTIONS, SCORERS, ScoreInput, Services};
use serde_json::{Value, json};

use crate::Target;

/// A stand-in for math-verify, which answers no.
static SERVICES: LazyLock<Services> =
    LazyLock::new(|| Services { sandbox: None, math_verify: Some(MathVerify::new(|_, _| Ok(json!({"value": {"score": 0.0}})))) });

const TEXTS: [&str; 8] = [
    "Thus 3 + 4 = 7.\n#### 7",
    "<think>so</think>\nThe answer is \\boxed{\\frac{1}{2}}.",
    "Answer: $x^2 + 1$",
    "```python\nprint(1)\n```",
    "<answer>Paris</answer>",
    "\\boxed{(1, 2) \\cup [3, \\infty)}",
    "\\boxed{\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}}",
    "12,345.67 \\text{ cm}^2",
];

pub fn scorers() -> Target {
    Target {
        name: "scorers",
        seeds: || TEXTS.map(|text| text.as_bytes().to_vec()).to_vec(),
        words: &[
            "\\boxed{",
            "}",
            "{",
            "\\frac",
            "\\frac{",
            "\\sqrt{",
            "\\left(",
            "\\right)",
            "(",
            ")",
            "[",
            "]",
            "^",
            "_",
            "**",
            "\\pi",
            "%",
            "$",
            "\\$",
            "<think>",
            "</think>",
            "<answer>",
            "</answer>",
            "#### ",
            "Answer: ",
            "```",
            "-",
            "+",
            "/",
            "1/",
            "0",
            "x",
            ",",
            "\\text{",
            "\\begin{pmatrix}",
            "\\\\",
            "&",
            "\n",
            "é",
            "\u{0660}",
        ],
        cases: 600,
        read: |input, _| {
            let text = String::from_utf8_lossy(input);
            let ids: Vec<u32> = text.bytes().map(u32::from).collect();
            let truths: [Value; 4] = ["\\frac{1}{2}".into(), "7".into(), "x^2+1".into(), json!({"target": ["Paris"]})];
            for truth in &truths {
                let scored = SCORERS.iter().map(|scorer| (scorer.run, Vec::new()));
                let asked =
                    FUNCTIONS.iter().map(|function| (function.run, function.settings(&Default::default()).unwrap_or_default()));
                for (run, settings) in scored.chain(asked) {
                    let input = ScoreInput {
                        data_source: "openai/gsm8k",
                        solution: &text,
                        raw: &text,
                        token_ids: Some(&ids),
                        ground_truth: truth,
                        settings: &settings,
                        services: &SERVICES,
                        ..Default::default()
                    };
                    _ = run(&input);
                }
            }
        },
    }
}
