//! The reward functions that are chosen by name, for every data source: [`FUNCTIONS`] and every scorer.

use anyhow::Context;

use super::function::{Function, RowPart};
use super::function_setting::PREFILLED;
use super::score::Score;
use super::scorers::{SCORERS, find};
use super::services::RewardService;
use super::{
    cosine_scaled, gsm8k, integer_format, math_dapo, math_verify_functions, repetition_penalty, soft_overlong, think_format,
};

/// Name of the function that calls the scorer of the row's data source.
pub(crate) const DATA_SOURCE: &str = "data_source";

/// Name of the function that returns the reward model's score. That score is known only after all other functions have been
/// called.
pub(crate) const REWARD_MODEL: &str = "reward_model";

/// Functions that are not the scorer of a data source. Every scorer can be chosen by its name too.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: DATA_SOURCE,
        doc: "The scorer of the row's data source.\nverl: default_compute_score.",
        settings: &[],
        reads: &[RowPart::DataSource, RowPart::GroundTruth],
        needs: &[RewardService::Rules],
        opens: None,
        check: |input| (find(input.data_source)?.check)(input),
        run: |input| (find(input.data_source)?.run)(input),
    },
    Function {
        name: REWARD_MODEL,
        doc: "The score of the reward model, which reward_model.enable=true loads.\nverl: rm_scores.",
        settings: &[],
        reads: &[],
        needs: &[],
        opens: None,
        check: |_| Ok(()),
        run: |input| input.model_score.map(Score::new).context("no reward model is loaded: write reward_model.enable=true"),
    },
    think_format::FUNCTION,
    repetition_penalty::FUNCTION,
    soft_overlong::FUNCTION,
    cosine_scaled::FUNCTION,
    gsm8k::FLEXIBLE,
    math_dapo::STRICT_BOX,
    integer_format::FUNCTION,
    math_verify_functions::VERL,
    math_verify_functions::ACCURACY,
    math_verify_functions::REASONING_ACCURACY,
];

/// Returns all functions.
pub(crate) fn all() -> impl Iterator<Item = Function> {
    let scorers = SCORERS.iter().map(|s| Function {
        name: s.name,
        doc: s.doc,
        settings: if s.opens.is_some() { PREFILLED } else { &[] },
        reads: &[RowPart::GroundTruth],
        needs: s.needs,
        opens: s.opens,
        check: s.check,
        run: s.run,
    });
    FUNCTIONS.iter().copied().chain(scorers)
}

/// Returns the function with this name.
pub fn function(name: &str) -> Option<Function> {
    all().find(|function| function.name == name)
}

/// Returns the names of all functions.
pub fn function_names() -> Vec<&'static str> {
    all().map(|function| function.name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::math_verify::MathVerify;
    use super::super::score_input::ScoreInput;
    use super::super::{Services, sandbox};
    use super::*;

    /// Ground truths of every shape, right for some functions and wrong for others.
    fn truths() -> Vec<Value> {
        let cases = r#"{"inputs": ["1"], "outputs": ["1"]}"#;
        vec![
            json!(null),
            json!("56"),
            json!(""),
            json!(56),
            json!(5.6),
            json!(true),
            json!([56]),
            json!(["56"]),
            json!({}),
            json!({"target": "56"}),
            json!({"target": ["56"]}),
            json!({"target": 56}),
            json!({"target": [56]}),
            json!({"inputs": ["1"], "outputs": ["1"]}),
            json!(cases),
            json!({"inputs": ["1"], "outputs": []}),
        ]
    }

    /// A function rejects exactly those rows for which it can score no response.
    #[test]
    fn rows_are_refused_where_no_response_can_be_scored() {
        let math_verify = MathVerify::new(|_, _| Ok(json!({"value": {"score": 1.0}})));
        let services = Services { sandbox: None, math_verify: Some(math_verify) };
        let responses = ["", "56", "#### 56", r"\boxed{\sqrt{2}}", "<answer>56</answer>", "Answer: 56", "<think>a</think>56"];
        let sources = ["openai/gsm8k", "searchR1_nq", "math_dapo", "numina_olympiads", "lighteval/MATH"];
        let selected = all().filter(|function| ![REWARD_MODEL, "sandbox_fusion"].contains(&function.name));
        for function in selected {
            let settings: Vec<(&str, f64)> =
                function.settings.iter().map(|setting| (setting.name, setting.default.unwrap_or(8.0))).collect();
            for (data_source, truth) in sources.iter().flat_map(|source| truths().into_iter().map(move |truth| (source, truth))) {
                for token_ids in [None, Some(&[1, 2][..])] {
                    let row = ScoreInput {
                        data_source,
                        ground_truth: &truth,
                        token_ids,
                        settings: &settings,
                        services: &services,
                        ..Default::default()
                    };
                    let refused = (function.check)(&row).is_err();
                    for solution in responses {
                        let failed = (function.run)(&ScoreInput { solution, raw: solution, ..row }).is_err();
                        let of = (function.name, data_source, &truth, token_ids, solution);
                        assert_eq!(failed, refused, "{of:?}");
                    }
                }
            }
        }
        let programs = |truth: &Value| sandbox::check(&ScoreInput { ground_truth: truth, ..Default::default() }).is_ok();
        let fit: Vec<Value> = truths().into_iter().filter(programs).collect();
        assert_eq!(fit.len(), 3, "null, and the cases as an object and as text: {fit:?}");
    }

    /// verl's prime_math scorer converts the ground truth to text before it compares; its other scorers give 0 for a number, or
    /// fail.
    #[test]
    fn a_number_is_a_ground_truth_where_verl_takes_one() {
        let scored = |truth: Value| {
            let input = ScoreInput { solution: r"\boxed{56}", ground_truth: &truth, ..Default::default() };
            super::super::prime_math::score(&input).unwrap().score
        };
        assert_eq!([json!(56), json!("56"), json!(56.0), json!(57)].map(scored), [Some(1.0), Some(1.0), Some(1.0), Some(0.0)]);
    }
}
