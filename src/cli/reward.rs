//! `trainer reward check`: examines a reward function before training, or prints the scores that it gives to the responses in a file.

use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::ConfigArgs;
use super::error::CliError;
use super::print::{print, print_data};
use crate::pipelines::reward_check::{CheckedResponse, Examination, ExamineOptions, LoadGeneration, Probe, check, examine};
use burnish_config::schema::{EvalConfig, GenerationConfig};
use burnish_doctor::{Finding, Verdict};
use burnish_util::excerpt::beginning_of;

#[derive(Subcommand)]
pub(crate) enum RewardCommand {
    /// Examine a reward function before training (--data), or print the score or the error of each response (--rows)
    Check(CheckArgs),
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// FILE.py, FILE.py:FUNCTION or pkg://MODULE:FUNCTION, or the name of a built-in function
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// Rows of training: examine the function with many responses, and say what it pays for
    #[arg(long, value_name = "FILE", required_unless_present = "rows")]
    data: Option<String>,
    /// Rows with responses, as `trainer eval` reads them: print their scores
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    rows: Option<String>,
    /// Model whose responses are scored too: pass@n, and the share of groups with different scores
    #[arg(long, value_name = "MODEL", conflicts_with = "rows")]
    model: Option<String>,
    /// Responses of the model to each row
    #[arg(long, value_name = "N", default_value_t = 8, requires = "model", value_parser = clap::value_parser!(u8).range(2..=16))]
    samples: u8,
    /// Time limit of the examination
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, conflicts_with = "rows")]
    seconds: f64,
    /// Print a JSON object per finding, or per response
    #[arg(long)]
    json: bool,
    /// key=value settings of evaluation.yaml, such as data.response_key=completion; later ones win
    #[arg(value_name = "OVERRIDE")]
    overrides: Vec<String>,
}

pub(super) fn run(command: RewardCommand) -> Result<(), CliError> {
    let RewardCommand::Check(args) = command;
    if args.data.is_some() {
        return args.examine();
    }
    let loaded = args.config().load::<EvalConfig>()?;
    let checked = check(loaded).map_err(CliError::classify)?;
    match args.json {
        true => print_data(&checked.iter().map(|one| format!("{}\n", Value::Object(one.object.clone()))).collect::<String>())?,
        false => print(&checked.iter().map(shown).collect::<String>())?,
    }
    match checked.iter().filter(|one| one.score.is_err()).count() {
        0 => Ok(()),
        failed => {
            Err(CliError::run(anyhow!("{failed} of {} responses have no score because the function failed", checked.len())))
        }
    }
}

/// Returns the line of a response, or several lines for an error.
fn shown(one: &CheckedResponse) -> String {
    let place = match one.response {
        0 => one.place.clone(),
        response => format!("{}, response {response}", one.place),
    };
    match &one.score {
        Ok(score) => format!("{place}  {}\n", score.score.map_or_else(|| "abstains".to_owned(), |score| score.to_string())),
        Err(error) => format!("{place}  {error}\n"),
    }
}

/// Calls that hang for which an examination has time, and the shortest time limit of a call in seconds.
const CALLS_IN_TIME: f64 = 6.0;
const SHORTEST: f64 = 3.0;

impl CheckArgs {
    /// Examines the function, and fails if a probe does.
    fn examine(&self) -> Result<(), CliError> {
        if !(self.seconds > 0.0 && self.seconds < 1e6) {
            return Err(CliError::Setup(format!("--seconds is {}: give a number above 0", self.seconds)));
        }
        let loaded = self.config().load::<EvalConfig>()?;
        let options = ExamineOptions { limit: Duration::from_secs_f64(self.seconds), generation: self.generation() };
        let found = examine(loaded, &options).map_err(CliError::classify)?;
        match self.json {
            true => print_data(&objects(&found).iter().map(|one| format!("{one}\n")).collect::<String>())?,
            false => print(&page(&found))?,
        }
        match found.count(Verdict::Fail) {
            0 => Ok(()),
            _ => Err(CliError::Different),
        }
    }

    /// Returns the loading of the generation's settings, if a model is named. Overrides of its sections are for it, those of the
    /// prompt for both.
    fn generation(&self) -> Option<LoadGeneration> {
        let model = self.model.clone()?;
        let (samples, own) = (self.samples, self.overrides.clone());
        Some(Box::new(move |rows, responses| {
            let set = |key: &str, value: &str| format!("{key}='{}'", value.replace('\'', "\\'"));
            let (rows, responses) = (rows.display().to_string(), responses.display().to_string());
            let mut overrides = vec![set("data.path", &rows), set("data.output_path", &responses), set("model.path", &model)];
            overrides.push(format!("data.n_samples={samples}"));
            overrides.extend(own.iter().filter(|own| of_generation(own) || own.starts_with("data.prompt_key=")).cloned());
            let config = Some("generation.yaml".to_owned());
            ConfigArgs { config, overrides, ..ConfigArgs::default() }.load::<GenerationConfig>()
        }))
    }

    /// Returns the settings of the evaluation that the arguments describe.
    fn config(&self) -> ConfigArgs {
        let set = |key: &str, value: &str| format!("{key}='{}'", value.replace('\'', "\\'"));
        let rows = self.data.as_ref().or(self.rows.as_ref()).map(String::as_str).unwrap_or_default();
        let mut overrides = vec![set("data.path", rows)];
        let (path, names) = split(&self.function);
        match burnish_reward::function(&self.function) {
            Some(built_in) => overrides.push(format!("reward_model.reward_functions=[{}]", built_in.name)),
            None => {
                overrides.push(set("custom_reward_function.path", path));
                overrides.extend(names.map(|names| format!("custom_reward_function.name=[{names}]")));
            }
        }
        if self.data.is_some() {
            overrides.push(format!("reward.timeout={}", (self.seconds / CALLS_IN_TIME).max(SHORTEST)));
        }
        overrides.extend(self.model.iter().map(|model| set("data.tokenizer", model)));
        let own = self.overrides.iter().filter(|own| self.model.is_none() || !of_generation(own));
        overrides.extend(own.cloned());
        if self.data.is_some() {
            overrides.push("reward.on_error=error".to_owned());
        }
        ConfigArgs { config: Some("evaluation.yaml".to_owned()), overrides, ..ConfigArgs::default() }
    }
}

/// Returns true if an override is one of `trainer generate`.
fn of_generation(own: &str) -> bool {
    ["rollout.", "model.", "trainer."].iter().any(|section| own.trim_start_matches('+').starts_with(section))
}

/// Splits `FILE:FUNCTION`, where several functions may be separated by commas.
fn split(function: &str) -> (&str, Option<&str>) {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_,".contains(c));
    match function.rsplit_once(':') {
        Some((file, names)) if is_name(names) => (file, Some(names)),
        _ => (function, None),
    }
}

/// Returns a JSON object per finding.
fn objects(found: &Examination) -> Vec<Value> {
    let object = |(probe, finding): &(&Probe, Finding)| {
        let is_bad = matches!(finding.verdict, Verdict::Warn | Verdict::Fail);
        let (row, response) = finding.example.clone().unzip();
        json!({
            "check": probe.name, "verdict": finding.verdict.name(), "number": finding.number, "found": finding.sentence,
            "meaning": is_bad.then_some(probe.meaning), "advice": is_bad.then_some(probe.remedy), "row": row, "response": response,
        })
    };
    found.findings.iter().map(object).collect()
}

/// Returns the findings for people: failures and warnings first, each with its example, meaning and advice.
fn page(found: &Examination) -> String {
    let (examined, all) = found.rows;
    let mut text = format!(
        "{}: {examined} of {all} rows, {} calls in {:.1} s\n\n",
        found.functions.join(", "),
        found.calls,
        found.took.as_secs_f64()
    );
    for verdict in [Verdict::Fail, Verdict::Warn, Verdict::Pass] {
        for (probe, finding) in found.findings.iter().filter(|(_, finding)| finding.verdict == verdict) {
            text += &format!("{:<5} {}: {}\n", verdict.name(), probe.name, finding.sentence);
            if !matches!(verdict, Verdict::Warn | Verdict::Fail) {
                continue;
            }
            if let Some((row, response)) = &finding.example {
                text += &format!("      {row}: {:?}\n", beginning_of(response, SHOWN));
            }
            text += &format!("      {}\n      {}\n", probe.meaning, probe.remedy);
        }
    }
    for verdict in [Verdict::NotReached, Verdict::NotApplicable] {
        // Probes that share a reason share a line.
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (probe, finding) in found.findings.iter().filter(|(_, finding)| finding.verdict == verdict) {
            match reasons.iter_mut().find(|(reason, _)| *reason == finding.sentence) {
                Some((_, names)) => names.push(probe.name),
                None => reasons.push((finding.sentence.as_str(), vec![probe.name])),
            }
        }
        text.extend(reasons.iter().map(|(reason, names)| format!("{:<5} {}: {reason}\n", verdict.name(), names.join(", "))));
    }
    let counts =
        [Verdict::Fail, Verdict::Warn, Verdict::Pass].map(|verdict| format!("{} {}", found.count(verdict), verdict.name()));
    format!("{text}\n{}\n", counts.join(", "))
}

/// Number of characters of a response that are shown.
const SHOWN: usize = 90;
