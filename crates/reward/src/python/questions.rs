//! Questions of a user's code to the built-in scorers during a call, through the stand-ins for verl's scorers
//! (`verl_scorers.py`).

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::gsm8k::{self, Method};
use crate::math_verify::{MathVerify, Question};
use crate::score_input::ScoreInput;
use crate::scorers::find;
use crate::services::Services;
use crate::{geo3k, math_dapo, math_reward, prime_math, search_r1};

/// Beginning of a message that is a question and not the reply to a request.
const ASK: &[u8] = b"{\"ask\":";

/// Answer to a question with these arguments.
type Answer = fn(&Services, &[Value]) -> Result<Value>;

/// The name of each question, with the function that answers it.
const ANSWERS: &[(&str, Answer)] = &[
    ("scorer", |_, given| Ok(json!(find(text(given, 0)?).ok().map(|scorer| scorer.name)))),
    ("score", |services, given| {
        let (data_source, solution) = (text(given, 0)?, text(given, 1)?);
        let input = ScoreInput { data_source, solution, raw: solution, ground_truth: &given[2], services, ..Default::default() };
        Ok(json!((find(data_source)?.run)(&input)?.score))
    }),
    ("gsm8k_answer", |_, given| {
        let method = if text(given, 1)? == "strict" { Method::Strict } else { Method::Flexible };
        Ok(json!(gsm8k::extract_solution(text(given, 0)?, method)))
    }),
    ("math_normal_form", |_, given| Ok(json!(math_reward::normal(text(given, 0)?)))),
    ("dapo_normal_form", |_, given| Ok(json!(math_dapo::normalize_final_answer(text(given, 0)?)))),
    ("verified", |services, given| {
        let verifier = services.math_verify.as_ref().context("math-verify was not started")?;
        Ok(json!(verifier.compare(Question::Verl, text(given, 0)?, text(given, 1)?)?.score))
    }),
    ("prime_answer", |_, given| {
        let (is_matched, answer) = prime_math::matched_answer(text(given, 0)?);
        Ok(json!([is_matched, answer]))
    }),
    ("prime_grade", |_, given| Ok(json!(prime_math::graded(text(given, 0)?, text(given, 1)?) == Some(true)))),
    ("prime_equal", |services, given| Ok(json!(prime_math::right(text(given, 0)?, text(given, 1)?, services)?.0))),
    ("geo3k_answer", |_, given| Ok(json!(geo3k::answer_or_none(text(given, 0)?)))),
    ("geo3k_right", |services, given| Ok(json!(geo3k::is_right(text(given, 0)?, text(given, 1)?, services)?.0))),
    ("search_normal_form", |_, given| Ok(json!(search_r1::normal_form(text(given, 0)?)))),
];

fn text(given: &[Value], index: usize) -> Result<&str> {
    let value = given.get(index).unwrap_or(&Value::Null);
    value.as_str().with_context(|| format!("the scorer compares text, not {value}"))
}

/// The scorers that a pool's workers may ask.
pub(super) struct Questions {
    services: Services,
}

impl Questions {
    pub(super) fn new(math_verify: MathVerify) -> Self {
        Self { services: Services { sandbox: None, math_verify: Some(math_verify) } }
    }

    /// Returns the answer to a worker's message, as a line; `None` if the message is not a question.
    pub(super) fn answer(&self, message: &[u8]) -> Option<Vec<u8>> {
        let question: Value = message.starts_with(ASK).then(|| serde_json::from_slice(message).ok())??;
        let (name, given) = (question["ask"].as_str()?, question["arguments"].as_array()?);
        let (_, answer) = ANSWERS.iter().find(|(known, _)| *known == name)?;
        let reply = match answer(&self.services, given) {
            Ok(value) => json!({ "value": value }),
            Err(error) => json!({ "error": format!("{error:#}") }),
        };
        Some(format!("{reply}\n").into_bytes())
    }
}
