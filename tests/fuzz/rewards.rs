//! Rewards: texts of a model, read by every scorer and function that runs in this process; the replies of servers that score; and
//! requests to `serve-rm`.

use std::sync::LazyLock;

use burnish::pipelines::serve_rm::queries;
use burnish::reward::math_verify::MathVerify;
use burnish::reward::remote::read_answer;
use burnish::reward::sandbox::verdict;
use burnish::reward::{FUNCTIONS, SCORERS, ScoreInput, Services};
use serde_json::{Value, json};

use crate::Target;

/// A stub of math-verify that accepts nothing.
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

pub(crate) fn scorers() -> Target {
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
                let requested =
                    FUNCTIONS.iter().map(|function| (function.run, function.settings(&Default::default()).unwrap_or_default()));
                for (run, settings) in scored.chain(requested) {
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

const JSON_WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "NaN",
    "-Infinity",
    "\\u0000",
    "\\ud800",
    "\"rewards\": ",
    "\"extra_logs\": ",
    "\"query\": ",
    "\"status\": ",
    "1e999",
    "\u{1b}[2J",
    "é",
];

pub(crate) fn remote_replies() -> Target {
    Target {
        name: "remote_replies",
        seeds: || {
            let replies = [
                json!({"rewards": [0.5], "scores": [1], "extra_logs": {"acc": [true], "why": ["text"], "n": 3}}),
                json!({"rewards": null, "scores": null}),
                json!({"rewards": [[-1.5]]}),
            ];
            replies.map(|reply| reply.to_string().into_bytes()).to_vec()
        },
        words: JSON_WORDS,
        cases: 2_000,
        read: |input, _| drop(read_answer(input)),
    }
}

pub(crate) fn sandbox_replies() -> Target {
    Target {
        name: "sandbox_replies",
        seeds: || {
            let run = json!({"status": "Finished", "return_code": 0, "stdout": "4\n", "stderr": "", "execution_time": 0.1});
            let replies = [
                json!({"status": "Success", "compile_result": null, "run_result": run}),
                json!({"status": "Failed", "compile_result": {"status": "Error", "return_code": 1}, "run_result": null}),
                json!({"status": "SandboxError", "message": "no room"}),
            ];
            replies.map(|reply| reply.to_string().into_bytes()).to_vec()
        },
        words: JSON_WORDS,
        cases: 2_000,
        read: |input, _| {
            if let Ok(reply) = serde_json::from_slice::<Value>(input) {
                _ = verdict(&reply, Some("4"));
            }
        },
    }
}

pub(crate) fn request_bodies() -> Target {
    Target {
        name: "request_bodies",
        seeds: || {
            let bodies = [json!({"query": ["1+1=2", "é"], "prompts": null, "labels": [{"x": 1}, null]}), json!({"query": []})];
            bodies.map(|body| body.to_string().into_bytes()).to_vec()
        },
        words: JSON_WORDS,
        cases: 2_000,
        read: |input, _| drop(queries(input, 64).map_err(|refusal| refusal.response())),
    }
}
