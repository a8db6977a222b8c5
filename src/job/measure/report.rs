//! The lines of `--dry-run` about times, memory and costs.

use std::fmt::Write as _;
use std::time::Duration;

use super::measurable::{StepPlan, StepSize};
use crate::job::settings::RunSettings;
use burnish_util::strftime::strftime;
use burnish_util::time::{human, unix_time};

/// Seconds of a whole step and a whole validation.
#[derive(Clone, Debug)]
pub(crate) struct StepTimes {
    /// Mean length of the responses, in tokens.
    pub length: f64,
    /// Seconds of each phase.
    pub phases: Vec<(String, f64)>,
    pub validation: f64,
}

/// The times of a run.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub plan: StepPlan,
    /// Size of the largest step that was made.
    pub measured: StepSize,
    /// Times with responses as in the measurement; `None` if no response ended.
    pub expected: Option<StepTimes>,
    /// Times with responses as long as allowed; `None` if nothing is sampled.
    pub most: Option<StepTimes>,
    /// Peak of the memory so far, in GiB: of the GPU, or of the process without one.
    pub peak_gib: Option<f64>,
}

/// The steps and validations that are left of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLength {
    pub steps: u64,
    pub validations: u64,
    /// True if the run continues from a checkpoint. Its weights are not measured.
    pub is_resumed: bool,
}

impl RunLength {
    /// Counts the steps and validations of a run after step `resumed`. `validates`: there are rows of validation.
    pub(crate) fn new(settings: &RunSettings, resumed: Option<u64>, validates: bool) -> Self {
        let done = resumed.unwrap_or(0);
        let steps = if settings.val_only { 0 } else { settings.total_steps.saturating_sub(done) };
        let before = settings.val_only || settings.val_before_train && done == 0;
        let after = (done + 1..=done + steps).filter(|step| settings.validates_at(*step)).count() as u64;
        let validations = if validates { after + u64::from(before) } else { 0 };
        Self { steps, validations, is_resumed: resumed.is_some() }
    }
}

impl StepTimes {
    fn step(&self) -> f64 {
        self.phases.iter().map(|(_, seconds)| seconds).sum()
    }

    fn total(&self, length: RunLength) -> f64 {
        length.steps as f64 * self.step() + length.validations as f64 * self.validation
    }
}

impl Times {
    /// Returns the lines of a report. `price`: of an hour.
    pub(crate) fn describe(&self, length: RunLength, price: Option<f64>) -> String {
        let columns: Vec<&StepTimes> = self.expected.iter().chain(&self.most).collect();
        let mut text = format!("time        {}\n", self.basis());
        let mut line = |name: &str, of: &dyn Fn(&StepTimes) -> f64, end: &str| {
            let values: String = columns.iter().map(|times| format!("{:>12}", seconds(of(times)))).collect();
            writeln!(text, "{}", format!("  {name:22}{values}  {end}").trim_end()).expect("a text has no errors");
        };
        if self.plan.samples > 0 {
            line("tokens of a response", &|times| times.length, "");
        }
        for (index, (phase, _)) in columns[0].phases.iter().enumerate() {
            line(phase, &|times| times.phases[index].1, "s");
        }
        line("step", &StepTimes::step, "s");
        if length.validations > 0 {
            line("validation", &|times| times.validation, "s");
        }
        let spans: Vec<String> = columns.iter().map(|times| span(times.total(length))).collect();
        let ends: Vec<String> = columns.iter().map(|times| end(times.total(length))).collect();
        let validations = match length.validations {
            0 => String::new(),
            1 => " and a validation".to_owned(),
            count => format!(" and {count} validations"),
        };
        let steps = if length.steps == 1 { "1 step" } else { &format!("{} steps", length.steps) };
        writeln!(text, "total       {} for {steps}{validations}: until {}", spans.join(" to "), ends.join(" to "))
            .expect("a text has no errors");
        if let Some(price) = price {
            let costs: Vec<String> = columns.iter().map(|times| format!("{:.2}", times.total(length) / 3600.0 * price)).collect();
            writeln!(text, "cost        {}, at {price} an hour (trainer.price_per_hour)", costs.join(" to "))
                .expect("a text has no errors");
        }
        if let Some(peak) = self.peak_gib {
            writeln!(text, "peak        {peak:.3} GiB so far, in these steps").expect("a text has no errors");
        }
        let resumed = length.is_resumed.then_some("responses of the resumed weights, in place of the initial ones");
        let left_out = ["start", "checkpoints"].into_iter().chain(self.plan.left_out.iter().copied()).chain(resumed);
        let left_out: Vec<&str> = left_out.collect();
        writeln!(text, "not in it   {}", left_out.join(", ")).expect("a text has no errors");
        text
    }

    /// Says what was measured, and what the columns assume.
    fn basis(&self) -> String {
        let StepPlan { size, rows_name, .. } = &self.plan;
        let rows = match self.measured.rows == size.rows {
            true => format!("measured with all {} {rows_name} of a step", size.rows),
            false => format!("measured with {} of the {} {rows_name} of a step", self.measured.rows, size.rows),
        };
        let limit = self.measured.tokens;
        let tokens = match limit == size.tokens {
            true => String::new(),
            false => format!(", up to {limit} of {} tokens of a response", size.tokens),
        };
        let columns = match (&self.expected, &self.most) {
            (Some(_), Some(_)) => "; left: responses as long as there; right: all as long as allowed",
            (None, Some(_)) => "; no response ended, so all are taken to be as long as allowed",
            _ => "",
        };
        format!("{rows}{tokens}{columns}")
    }
}

/// Returns a number with three digits or more.
fn seconds(value: f64) -> String {
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.digits$}")
}

fn span(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| "for ever".to_owned(), human)
}

/// Returns the time after these seconds.
fn end(seconds: f64) -> String {
    strftime("%F %H:%M UTC", (unix_time() + seconds) as i64, 0).unwrap_or_else(|_| "never".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_count_steps_validations_and_money() {
        let times = |length: f64, generation: f64| StepTimes {
            length,
            phases: vec![("gen".to_owned(), generation), ("update_actor".to_owned(), 1.0)],
            validation: 10.0,
        };
        let size = StepSize { rows: 8, tokens: 100 };
        let mut all = Times {
            plan: StepPlan {
                size,
                rows_name: "prompts",
                drawn_rows: 8,
                samples: 4,
                given_per_row: 1.0,
                validated: 3,
                step: 1,
                left_out: vec!["reward functions"],
            },
            measured: StepSize { rows: 4, tokens: 25 },
            expected: Some(times(20.0, 2.0)),
            most: Some(times(100.0, 11.0)),
            peak_gib: Some(1.5),
        };
        let text = all.describe(RunLength { steps: 1200, validations: 2, is_resumed: false }, Some(2.0));
        for line in [
            "time        measured with 4 of the 8 prompts of a step, up to 25 of 100 tokens of a response; left:",
            "  tokens of a response          20.0         100\n",
            "  gen                           2.00        11.0  s\n",
            "  step                          3.00        12.0  s\n",
            "total       1h00m to 4h00m for 1200 steps and 2 validations: until ",
            "cost        2.01 to 8.01, at 2 an hour (trainer.price_per_hour)\n",
            "peak        1.500 GiB so far",
            "not in it   start, checkpoints, reward functions\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        all.expected = None;
        let text = all.describe(RunLength { steps: 1, validations: 0, is_resumed: false }, None);
        assert!(text.contains("no response ended") && !text.contains("validation") && !text.contains("cost"), "{text}");
    }
}
