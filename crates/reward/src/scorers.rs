//! Registry of scorers: the rule of each data source.

use anyhow::{Result, bail};

use super::score_input::{Scorer, truth_is_text};
use super::services::RewardService;
use super::{arithmetic, calculator, geo3k, gsm8k, math_dapo, math_reward, prime_math, sandbox, search_r1};
use burnish_util::suggest::did_you_mean;

/// All scorers; no data source is listed twice.
pub static SCORERS: &[Scorer] = &[
    Scorer {
        name: "gsm8k",
        doc: "1 if the number after the last \"#### \" equals the ground truth, else 0; abstains if the ground truth is null",
        data_sources: &["openai/gsm8k"],
        needs: &[],
        opens: None,
        check: truth_is_text,
        run: gsm8k::score,
    },
    Scorer {
        name: "arithmetic",
        doc: "1 if the whole response equals the ground truth, else 0; abstains if the ground truth is null",
        data_sources: &["burnish/arithmetic"],
        needs: &[],
        opens: None,
        check: truth_is_text,
        run: arithmetic::score,
    },
    Scorer {
        name: "calculator",
        doc: "1 if the last line of the response equals the ground truth, else 0; abstains if that is null. In a conversation with tools, \
              the last line is the model's last turn",
        data_sources: &["burnish/calculator"],
        needs: &[],
        opens: None,
        check: truth_is_text,
        run: calculator::score,
    },
    Scorer {
        name: "math_reward",
        doc: "1 if the last \\boxed{} equals the ground truth in the normal form of the MATH data set, else 0; abstains if that is null",
        data_sources: &["lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500"],
        needs: &[],
        opens: None,
        check: truth_is_text,
        run: math_reward::score,
    },
    Scorer {
        name: "math_dapo",
        doc: "1 if the last \"Answer: \" or else the last \\boxed{} near the end equals the ground truth, else -1; abstains if that is null",
        data_sources: &["math_dapo", "math", "math_dapo_reasoning", "aime*"],
        needs: &[],
        opens: None,
        check: truth_is_text,
        run: math_dapo::score,
    },
    Scorer {
        name: "search_r1",
        doc: "1 if the last <answer> is one of the ground truth's target, ignoring case, articles and punctuation, else 0; abstains if the \
              ground truth is null",
        data_sources: search_r1::DATA_SOURCES,
        needs: &[],
        opens: Some("<answer>"),
        check: search_r1::check,
        run: search_r1::score,
    },
    Scorer {
        name: "geo3k",
        doc: "0.9 if the last \\boxed{} equals the ground truth as text, number or expression, and 0.1 for <think>…</think> before a \
              box; abstains if the ground truth is null. Comparisons that need algebra are made by math-verify",
        data_sources: &["hiyouga/geometry3k"],
        needs: &[RewardService::MathVerify],
        opens: Some("<think>"),
        check: truth_is_text,
        run: geo3k::score,
    },
    Scorer {
        name: "prime_math",
        doc: "1 if the answer of the response equals the ground truth as text, number or expression, else 0; abstains if that is \
              null. Comparisons that need algebra are made by math-verify",
        data_sources: &[
            "numina_aops_forum",
            "numina_synthetic_math",
            "numina_amc_aime",
            "numina_synthetic_amc",
            "numina_cn_k12",
            "numina_olympiads",
        ],
        needs: &[RewardService::MathVerify],
        opens: None,
        check: prime_math::check,
        run: prime_math::score,
    },
    Scorer {
        name: "sandbox_fusion",
        doc: "The share of the first ten test cases that the program in the response passes, run by the service of \
              reward.sandbox_fusion.url; abstains if the ground truth is null",
        data_sources: &["codecontests", "apps", "codeforces", "taco"],
        needs: &[RewardService::Sandbox],
        opens: None,
        check: sandbox::check,
        run: sandbox::score,
    },
];

/// Returns the scorer of a data source.
pub fn find(data_source: &str) -> Result<&'static Scorer> {
    let means = |listed: &&str| match listed.strip_suffix('*') {
        Some(beginning) => data_source.starts_with(beginning),
        None => data_source == *listed,
    };
    if let Some(scorer) = SCORERS.iter().find(|scorer| scorer.data_sources.iter().any(means)) {
        return Ok(scorer);
    }
    let known: Vec<&str> = SCORERS.iter().flat_map(|scorer| scorer.data_sources).copied().collect();
    let hint = did_you_mean(data_source, known.iter().copied());
    bail!(
        "no scorer for the data source \"{data_source}\".{hint} Data sources with a scorer: {}. For another one, write \
         custom_reward_function.path=FILE.py (a function of yours) or reward_model.reward_functions=[NAME] (one function for all rows)",
        known.join(", ")
    )
}

/// Fails on the first data source without a scorer. Call this before any response is generated.
pub fn check_sources<'a>(data_sources: impl IntoIterator<Item = &'a str>) -> Result<()> {
    data_sources.into_iter().try_for_each(|source| find(source).map(drop))
}
