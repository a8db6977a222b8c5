//! The score of a response: the weighted sum of several reward functions, each of which can abstain or fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::failure::Failure;
use super::functions::{REWARD_MODEL, all, function_names};
use super::stats::Stats;
use super::{BatchJudge, Judge, Score, ScoreInput, Services, find};
use crate::util::interrupt::Interrupted;
use crate::util::suggest::did_you_mean;

/// verl's name for the number that says if a response is right.
const ACCURACY: &str = "acc";

/// The way in which a reward function is called.
#[derive(Clone)]
pub enum Runs {
    /// In this process, at once.
    Rule(fn(&ScoreInput) -> Result<Score>),
    /// In this process, once the reward model's score is known.
    Late(fn(&ScoreInput) -> Result<Score>),
    /// Outside this process, for one response.
    Each(Arc<dyn Judge>),
    /// For all responses of a batch, once the last of them is complete.
    Together(Arc<dyn BatchJudge>),
}

/// A reward function of a run.
#[derive(Clone)]
pub struct Reward {
    pub name: String,
    pub weight: f64,
    pub settings: Vec<(&'static str, f64)>,
    pub check: Check,
    pub runs: Runs,
}

/// The check of a row by a reward function: fails if the function could not score any response to the row.
pub type Check = Arc<dyn Fn(&ScoreInput) -> Result<()> + Send + Sync>;

impl Reward {
    /// A reward function with weight 1, without settings, that accepts every row.
    pub fn new(name: &str, runs: Runs) -> Self {
        Self { name: name.to_owned(), weight: 1.0, settings: Vec::new(), check: Arc::new(|_| Ok(())), runs }
    }
}

/// The treatment of a response that a reward function fails to score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OnError {
    /// The run ends with an error.
    #[default]
    Error,
    /// The function abstains from the response.
    Abstain,
    /// The response gets this reward from the function.
    Value(f32),
}

/// The options of a run's rewards.
#[derive(Default)]
pub struct RewardOptions {
    /// The names of the functions: from [`Self::own`], or from [`all`].
    pub names: Vec<String>,
    /// One weight per name; empty if every weight is 1.
    pub weights: Vec<f64>,
    /// The settings of functions, by function name.
    pub settings: BTreeMap<String, BTreeMap<String, f64>>,
    /// Functions that only this run has, such as those of a Python file.
    pub own: Vec<Reward>,
    pub services: Services,
    pub on_error: OnError,
    /// True if the scorer of the data source also runs, for `acc` alone, if there is such a scorer and no function has reported
    /// `acc`. It shows the accuracy behind scores to which a reward model contributes.
    pub reports_accuracy: bool,
}

/// The reward functions of a run with their weights.
pub struct Rewards {
    rewards: Vec<Reward>,
    services: Services,
    on_error: OnError,
    reports_accuracy: bool,
    /// Call times and failures since the last report.
    pub stats: Stats,
}

/// The results of all functions for one response.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    /// Σ weight·reward over the functions that did not abstain; `None` if all of them did.
    pub score: Option<f32>,
    /// The unweighted reward of each function, in the order in which the functions were named.
    pub components: Vec<(String, Option<f64>)>,
    /// The numbers that the functions return with their rewards.
    pub extras: Vec<(String, f64)>,
    /// The answer from the first function that extracts one.
    pub pred: Option<String>,
    /// The values that the functions return with their rewards and that are not numbers.
    pub notes: Vec<(String, serde_json::Value)>,
}

/// The results of the functions that need only this response; `None` for functions that see a batch or the reward model's score.
pub struct Begun(Vec<Option<Result<Score>>>);

impl Begun {
    /// True if a function failed.
    pub fn failed(&self) -> bool {
        self.0.iter().any(|said| matches!(said, Some(Err(_))))
    }
}

impl Rewards {
    /// Rewards from the given functions.
    pub fn of(rewards: Vec<Reward>) -> Self {
        Self {
            rewards,
            services: Services::default(),
            on_error: OnError::Error,
            reports_accuracy: false,
            stats: Stats::default(),
        }
    }

    /// Looks up the functions that `options` names.
    ///
    /// # Errors
    /// If there is no name, a name is unknown or occurs twice, the number of weights differs from that of names, a weight is not
    /// finite, or there are settings for a function that is not named or does not have them.
    pub fn new(options: RewardOptions) -> Result<Self> {
        let RewardOptions { names, weights, settings, own, services, on_error, reports_accuracy } = options;
        let known: Vec<&str> = own.iter().map(|reward| reward.name.as_str()).chain(function_names()).collect();
        ensure!(!names.is_empty(), "no reward function is named; there are {}", known.join(", "));
        let counts = (weights.len(), names.len());
        ensure!(weights.is_empty() || counts.0 == counts.1, "{} weights for {} reward functions", counts.0, counts.1);
        let none = BTreeMap::new();
        let mut rewards: Vec<Reward> = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let given = settings.get(name).unwrap_or(&none);
            let own = own.iter().find(|reward| reward.name == *name).cloned();
            let reward = match (own, all().find(|function| function.name == name)) {
                (Some(own), _) => {
                    ensure!(
                        given.is_empty(),
                        "reward.function_kwargs has \"{name}\", whose settings are custom_reward_function.reward_kwargs"
                    );
                    own
                }
                (None, Some(function)) => {
                    let runs = if name == REWARD_MODEL { Runs::Late(function.run) } else { Runs::Rule(function.run) };
                    Reward { settings: function.settings(given)?, check: Arc::new(function.check), ..Reward::new(name, runs) }
                }
                (None, None) => {
                    let hint = did_you_mean(name, known.iter().copied());
                    bail!("no reward function is called \"{name}\"; there are {}.{hint}", known.join(", "))
                }
            };
            ensure!(rewards.iter().all(|known| known.name != *name), "the reward function \"{name}\" is named twice");
            let weight = weights.get(i).copied().unwrap_or(1.0);
            ensure!(weight.is_finite(), "the weight of the reward function \"{name}\" is {weight}");
            rewards.push(Reward { weight, ..reward });
        }
        if let Some(unused) = settings.keys().find(|name| !names.contains(name)) {
            let hint = did_you_mean(unused, names.iter().map(String::as_str));
            bail!("reward.function_kwargs has \"{unused}\", which is none of the reward functions {}.{hint}", names.join(", "));
        }
        Ok(Self { rewards, services, on_error, reports_accuracy, stats: Stats::default() })
    }

    /// The name and the weight of each function, in order.
    pub fn weights(&self) -> impl Iterator<Item = (&str, f64)> + '_ {
        self.rewards.iter().map(|reward| (reward.name.as_str(), reward.weight))
    }

    /// True if a function is called outside this process.
    pub fn is_remote(&self) -> bool {
        self.rewards.iter().any(|reward| matches!(reward.runs, Runs::Each(_) | Runs::Together(_))) || self.services.any()
    }

    /// The services that the functions use.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// Checks that every function can score responses to a row, whatever their text; `input` has no response.
    ///
    /// # Errors
    /// The error of the first function that cannot, with its name.
    pub fn check(&self, input: &ScoreInput) -> Result<()> {
        let check = |reward: &Reward| {
            (reward.check)(&self.own(reward, input)).with_context(|| format!("reward function \"{}\"", reward.name))
        };
        self.rewards.iter().try_for_each(check)
    }

    /// True if a failure ends the run.
    pub fn fails(&self) -> bool {
        self.on_error == OnError::Error
    }

    /// The weighted sum of the functions' rewards for one response (TRL: nansum over functions). If all functions abstain, there
    /// is no score.
    ///
    /// # Errors
    /// As for [`Self::finish`].
    pub fn score(&self, input: &ScoreInput) -> Result<Combined> {
        let mut combined =
            self.finish(std::slice::from_ref(input), vec![self.begin(input)], |_| "scoring the response".to_owned())?;
        combined.pop().context("one response has one score")
    }

    /// Calls the functions that need only this response. Several threads can do so at once.
    pub fn begin(&self, input: &ScoreInput) -> Begun {
        let ask = |reward: &Reward| {
            let input = self.own(reward, input);
            let ask = || match &reward.runs {
                Runs::Rule(run) => Some(run(&input)),
                Runs::Each(judge) => Some(judge.score(&input)),
                Runs::Late(_) | Runs::Together(_) => None,
            };
            self.stats.time(&reward.name, ask)
        };
        Begun(self.rewards.iter().map(ask).collect())
    }

    /// [`Self::begin`] for response `i`; skipped if a response with a lower index has failed and failures end the run. Lower
    /// indices still run after a failure, because one of them may fail too: the same run always reports the same response.
    pub fn begin_unless(&self, i: usize, input: &ScoreInput, failed: &AtomicUsize) -> Option<Begun> {
        (i <= failed.load(Ordering::Relaxed)).then(|| {
            let begun = self.begin(input);
            if begun.failed() && self.fails() {
                failed.fetch_min(i, Ordering::Relaxed);
            }
            begun
        })
    }

    /// [`Self::begin`] for all responses, on `workers` threads. If a failure ends the run, the result holds at least the first
    /// response that fails and all before it.
    pub fn begin_all(&self, inputs: &[ScoreInput], workers: usize) -> Result<Vec<Begun>> {
        let failed = AtomicUsize::new(usize::MAX);
        let workers = workers.min(inputs.len().max(1));
        let threads = ThreadPoolBuilder::new().num_threads(workers).build().context("cannot start threads")?;
        let begin = |(i, input): (usize, &ScoreInput)| self.begin_unless(i, input, &failed);
        let begun: Vec<Option<Begun>> = threads.install(|| inputs.par_iter().enumerate().map(begin).collect());
        Ok(begun.into_iter().map_while(|begun| begun).collect())
    }

    /// Completes the scores of responses, in their order; `begun` is shorter than `inputs` if a response has failed. `place`
    /// describes a response for messages.
    ///
    /// # Errors
    /// If a failure ends the run: the first response that a function fails to score, with the function's name. A reward that is
    /// not finite is no error here; the caller decides about it (`trainer.on_nonfinite`).
    pub fn finish(&self, inputs: &[ScoreInput], begun: Vec<Begun>, place: impl Fn(usize) -> String) -> Result<Vec<Combined>> {
        let mut said: Vec<Vec<Option<Result<Score>>>> = begun.into_iter().map(|begun| begun.0).collect();
        let mut failures = Failures { rewards: self, first: None, count: 0 };
        for (i, said) in said.iter_mut().enumerate() {
            for (reward, said) in self.rewards.iter().zip(said) {
                if let Some(Err(error)) = said.take_if(|said| said.is_err()) {
                    *said = Some(Ok(failures.settle(error, reward, || place(i))?));
                }
            }
        }
        for (k, reward) in self.rewards.iter().enumerate() {
            let Runs::Together(judge) = &reward.runs else { continue };
            let own: Vec<ScoreInput> = inputs.iter().map(|input| self.own(reward, input)).collect();
            let scores = self.stats.time(&reward.name, || Some(judge.score(&own))).unwrap_or_else(|| Ok(Vec::new()));
            let scores = scores.and_then(|scores| {
                ensure!(scores.len() == own.len(), "{} scores for {} responses", scores.len(), own.len());
                Ok(scores)
            });
            let scores = match scores {
                Ok(scores) => scores,
                Err(error) => {
                    let settled = failures.settle(error, reward, || format!("scoring a batch of {} responses", own.len()))?;
                    failures.count += own.len().saturating_sub(1);
                    vec![settled; own.len()]
                }
            };
            scores.into_iter().zip(&mut said).for_each(|(score, said)| said[k] = Some(Ok(score)));
        }
        let mut combined = Vec::with_capacity(inputs.len());
        for (i, (input, said)) in inputs.iter().zip(said).enumerate() {
            let mut scores = Vec::with_capacity(said.len());
            for (reward, said) in self.rewards.iter().zip(said) {
                let score = match (&reward.runs, said) {
                    (Runs::Late(run), _) => run(&self.own(reward, input)),
                    (_, Some(said)) => said,
                    (_, None) => Err(anyhow!("it was not asked")),
                };
                scores.push(score.or_else(|error| failures.settle(error, reward, || place(i)))?);
            }
            combined.push(self.combine(scores, input));
        }
        failures.warn();
        Ok(combined)
    }

    /// The input for one function, with its settings.
    fn own<'a>(&'a self, reward: &'a Reward, input: &ScoreInput<'a>) -> ScoreInput<'a> {
        ScoreInput { settings: &reward.settings, services: &self.services, ..*input }
    }

    /// Computes the weighted sum. If two functions report a number of the same name, the first keeps it, and the other's is
    /// prefixed with its function's name.
    fn combine(&self, scores: Vec<Score>, input: &ScoreInput) -> Combined {
        let mut combined = Combined { score: None, components: Vec::new(), extras: Vec::new(), pred: None, notes: Vec::new() };
        let mut sum = None;
        for (reward, score) in self.rewards.iter().zip(scores) {
            if let Some(reward_of_it) = score.score {
                sum = Some(sum.unwrap_or(0.0) + reward.weight * f64::from(reward_of_it));
            }
            combined.components.push((reward.name.clone(), score.score.map(f64::from)));
            combined.pred = combined.pred.or(score.pred);
            combined.notes.extend(score.notes);
            for (name, value) in score.extras {
                let taken = combined.extras.iter().any(|(known, _)| *known == name);
                combined.extras.push((if taken { format!("{}/{name}", reward.name) } else { name }, value));
            }
        }
        combined.score = sum.map(|sum| sum as f32);
        // No service is asked for a number that is only reported, and if the scorer fails, the number is left out.
        let rule = find(input.data_source).ok().filter(|rule| self.reports_accuracy && !Services::asked_by(rule.name));
        if let Some(rule) = rule
            && combined.extras.iter().all(|(name, _)| name != ACCURACY)
            && let Ok(said) = (rule.run)(input)
        {
            let acc = said.extras.into_iter().find(|(name, _)| name == ACCURACY).map(|(_, acc)| acc);
            combined.extras.extend(acc.or(said.score.map(f64::from)).map(|acc| (ACCURACY.to_owned(), acc)));
        }
        combined
    }
}

/// The failures in one batch.
struct Failures<'a> {
    rewards: &'a Rewards,
    first: Option<String>,
    count: usize,
}

impl Failures<'_> {
    /// The score that replaces the one of a function that failed.
    fn settle(&mut self, error: Error, reward: &Reward, place: impl Fn() -> String) -> Result<Score> {
        if error.is::<Interrupted>() {
            return Err(error);
        }
        self.rewards.stats.failed(error.downcast_ref::<Failure>().map(|failure| failure.kind));
        let error = error.context(format!("reward function \"{}\"", reward.name)).context(place());
        let score = match self.rewards.on_error {
            OnError::Error => return Err(error),
            OnError::Abstain => Score::abstain(),
            OnError::Value(value) => Score::new(value),
        };
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{error:#}"));
        Ok(score)
    }

    fn warn(self) {
        if let Some(first) = self.first {
            let instead = match self.rewards.on_error {
                OnError::Value(value) => value.to_string(),
                OnError::Error | OnError::Abstain => "no opinion".to_owned(),
            };
            tracing::warn!("{} failed and stand for {instead} (reward.on_error); the first: {first}", plural(self.count));
        }
    }
}

fn plural(count: usize) -> String {
    if count == 1 { "one reward".to_owned() } else { format!("{count} rewards") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::reward::{repetition_penalty, think_format};

    fn function(name: &str, weight: f64, run: fn(&ScoreInput) -> Result<Score>) -> Reward {
        Reward { weight, ..Reward::new(name, Runs::Rule(run)) }
    }

    fn score(rewards: &Rewards, solution: &str, ground_truth: &Value) -> Result<Combined> {
        let data_source = "burnish/arithmetic";
        let model_score = Some(0.25);
        rewards.score(&ScoreInput { data_source, solution, model_score, ground_truth, ..Default::default() })
    }

    fn named(names: &[String], weights: &[f64]) -> Result<Rewards> {
        Rewards::new(RewardOptions { names: names.to_vec(), weights: weights.to_vec(), ..Default::default() })
    }

    #[test]
    fn functions_are_weighted_and_abstentions_left_out() {
        let names = ["data_source", "integer_format"].map(String::from);
        let rewards = named(&names, &[2.0, -0.5]).unwrap();
        let both = score(&rewards, "95", &"95".into()).unwrap();
        assert_eq!(both.score, Some(1.5));
        assert_eq!(both.components, [("data_source".into(), Some(1.0)), ("integer_format".into(), Some(1.0))]);
        assert_eq!((both.extras, both.pred.as_deref()), (vec![("acc".into(), 1.0)], Some("95")));
        let one = score(&rewards, "95", &Value::Null).unwrap();
        assert_eq!((one.score, one.components[0].1, one.extras.len()), (Some(-0.5), None, 0));
        let none = score(&named(&names[..1], &[]).unwrap(), "95", &Value::Null).unwrap();
        assert_eq!((none.score, none.components[0].1), (None, None));
    }

    #[test]
    fn a_reward_model_is_one_of_the_functions_and_the_rule_says_what_is_right() {
        let accurate = |names: &[String], weights: &[f64]| {
            let (names, weights) = (names.to_vec(), weights.to_vec());
            Rewards::new(RewardOptions { names, weights, reports_accuracy: true, ..Default::default() }).unwrap()
        };
        let alone = named(&["reward_model".into()], &[]).unwrap();
        let by_model = score(&alone, "94", &"95".into()).unwrap();
        assert_eq!((by_model.score, by_model.extras), (Some(0.25), vec![]));
        let alone = accurate(&["reward_model".into()], &[]);
        for (said, truth, acc) in
            [("95", Value::from("95"), vec![1.0]), ("94", "95".into(), vec![0.0]), ("95", Value::Null, vec![])]
        {
            let combined = score(&alone, said, &truth).unwrap();
            assert_eq!(combined.score, Some(0.25));
            assert_eq!(combined.extras, acc.iter().map(|acc| ("acc".to_owned(), *acc)).collect::<Vec<_>>());
        }
        let names = ["data_source", "reward_model"].map(String::from);
        let both = accurate(&names, &[1.0, 4.0]);
        let both = score(&both, "95", &"95".into()).unwrap();
        assert_eq!((both.score, both.extras), (Some(2.0), vec![("acc".into(), 1.0)]), "the rule is asked once");
    }

    /// A scorer that runs for `acc` alone asks no service, and a response that it cannot judge has no `acc`.
    #[test]
    fn a_number_that_is_only_reported_fails_nothing() {
        let names = vec!["reward_model".to_owned()];
        let rewards = Rewards::new(RewardOptions { names, reports_accuracy: true, ..Default::default() }).unwrap();
        for (data_source, truth) in
            [("taco", "{}".into()), ("numina_olympiads", r"\sqrt{2}".into()), ("openai/gsm8k", Value::from(4))]
        {
            let input = ScoreInput {
                data_source,
                solution: r"\boxed{2^{1/2}} #### 4",
                model_score: Some(0.25),
                ground_truth: &truth,
                ..Default::default()
            };
            let combined = rewards.score(&input).unwrap();
            assert_eq!((combined.score, combined.extras), (Some(0.25), vec![]), "{data_source}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let error = |names: &[&str], weights: &[f64]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            named(&names, weights).err().map(|error| error.to_string()).unwrap()
        };
        assert!(error(&["think_format"], &[]).ends_with("Did you mean \"think_format_reward\"?"));
        assert_eq!(error(&["gsm8k"], &[1.0, 2.0]), "2 weights for 1 reward functions");
        assert!(error(&["gsm8k", "gsm8k"], &[]).contains("twice") && error(&["gsm8k"], &[f64::NAN]).contains("NaN"));
        assert!(error(&[], &[]).contains("data_source"));

        let truth = "95".into();
        let nan = function("broken", 0.0, |_| Ok(Score::new(f32::NAN)));
        assert!(score(&Rewards::of(vec![nan]), "95", &truth).unwrap().score.is_some_and(f32::is_nan));
        let large = function("large", 2.0, |_| Ok(Score::new(f32::MAX)));
        assert_eq!(score(&Rewards::of(vec![large]), "95", &truth).unwrap().score, Some(f32::INFINITY));
        let twice = named(&["data_source".into(), "arithmetic".into()], &[]).unwrap();
        let twice = score(&twice, "95", &truth).unwrap();
        assert_eq!(twice.extras, [("acc".into(), 1.0), ("arithmetic/acc".into(), 1.0)]);
    }

    /// Two functions: one fails on "bad", and one always returns 1.
    #[test]
    fn a_failure_is_what_the_policy_says() {
        let said = |on_error| {
            let failing = function("failing", 3.0, |input| match input.solution {
                "bad" => bail!("out of order"),
                _ => Ok(Score::new(2.0)),
            });
            let fine = function("fine", 1.0, |_| Ok(Score::new(1.0)));
            let rewards = Rewards { on_error, ..Rewards::of(vec![failing, fine]) };
            let inputs = ["good", "bad", "bad"].map(|solution| ScoreInput { solution, ..Default::default() });
            let begun = inputs.iter().map(|input| rewards.begin(input)).collect();
            let scores = rewards.finish(&inputs, begun, |i| format!("response {i}"));
            (scores.map(|scores| scores.iter().map(|c| c.score).collect::<Vec<_>>()), rewards.stats.take().exceptions)
        };
        let (error, _) = said(OnError::Error);
        assert_eq!(format!("{:#}", error.unwrap_err()), "response 1: reward function \"failing\": out of order");
        let failing =
            function("failing", 1.0, |input| if input.solution == "bad" { bail!("out of order") } else { Ok(Score::new(2.0)) });
        let inputs = ["good", "bad", "bad", "good"].map(|solution| ScoreInput { solution, ..Default::default() });
        let begun = Rewards::of(vec![failing]).begin_all(&inputs, 1).unwrap();
        assert_eq!(begun.iter().map(Begun::failed).collect::<Vec<_>>(), [false, true], "nobody is asked behind a failure");
        let (abstained, failures) = said(OnError::Abstain);
        assert_eq!((abstained.unwrap(), failures), (vec![Some(7.0), Some(1.0), Some(1.0)], 2));
        let (valued, _) = said(OnError::Value(-1.0));
        assert_eq!(valued.unwrap(), [Some(7.0), Some(-2.0), Some(-2.0)]);
    }

    #[test]
    fn every_name_is_unique_and_documented() {
        let mut names = function_names();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|f| f.doc.lines().next().is_some_and(|line| line.len() > 10)));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Every text over the relevant pieces: the function must agree with the pattern, which is spelled out by position here.
        #[test]
        fn think_format_is_the_pattern(pieces in prop::collection::vec(prop::sample::select(vec!["<think>", "</think>", "a", "\n", "<", "think>"]), 0..6)) {
            let text = pieces.concat();
            let opened: Vec<usize> = text.match_indices("<think>").map(|(at, _)| at).collect();
            let closed = text.rfind("</think>");
            let expected = opened == [0] && closed.is_some_and(|at| at >= 7);
            let all = Rewards::of(vec![Reward::new("think", Runs::Rule(think_format::FUNCTION.run))]);
            prop_assert_eq!(score(&all, &text, &Value::Null).unwrap().score, Some(f32::from(u8::from(expected))));
        }

        #[test]
        fn repetition_costs_at_most_the_maximum_and_nothing_without_one(ids in prop::collection::vec(0..4u32, 0..12), n in 1..5usize) {
            let penalty = repetition_penalty::penalty(&ids, n, -2.0);
            prop_assert!(penalty > -2.0 && penalty <= 0.0);
            let distinct: Vec<u32> = (0..ids.len() as u32).collect();
            prop_assert_eq!(repetition_penalty::penalty(&distinct, n, -2.0), 0.0);
            // The same tokens once more: the only new n-grams are those across the seam.
            let again = repetition_penalty::penalty(&[ids.clone(), ids.clone()].concat(), n, -2.0);
            prop_assert!(ids.len() < n || again < 0.0);
        }
    }
}
