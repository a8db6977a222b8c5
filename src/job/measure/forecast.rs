//! From the times of small steps to those of whole steps.

/// Tokens of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StepWork {
    /// Tokens of prompts, or of whole examples.
    pub given: f64,
    /// Tokens of responses that the step learns from.
    pub sampled: f64,
    /// Tokens of all responses, also of those that dynamic sampling discards.
    pub generated: f64,
}

/// A measured step.
#[derive(Clone, Debug)]
pub(crate) struct TimedStep {
    pub rows: usize,
    /// Token limit of its responses.
    pub limit: usize,
    /// Seconds of each phase, in the order of the step.
    pub phases: Vec<(String, f64)>,
    pub work: StepWork,
    /// Responses of the step, and those of them that ended before the limit.
    pub responses: (usize, usize),
}

/// Phases whose time grows with the generated tokens. The others pass over all tokens.
const SAMPLING: [&str; 3] = ["gen", "gen_max", "reward"];

/// The last two measured steps, the larger one last.
pub(crate) struct StepForecast<'a> {
    pub smaller: Option<&'a TimedStep>,
    pub larger: &'a TimedStep,
    /// Passes of a phase in a step of so many rows.
    pub passes: &'a dyn Fn(&str, usize) -> f64,
}

impl StepWork {
    fn of(&self, phase: &str) -> f64 {
        if SAMPLING.contains(&phase) { self.generated } else { self.given + self.sampled }
    }
}

impl TimedStep {
    fn seconds(&self, phase: &str) -> Option<f64> {
        self.phases.iter().find(|(name, _)| name == phase).map(|(_, seconds)| *seconds)
    }

    /// Returns the mean length of responses that may have `limit` tokens; `None` if no response ended, so that it is unknown.
    /// Responses that were cut earlier are taken to end, at every further token, as often as at the tokens before (the maximum of
    /// the likelihood of a geometric distribution).
    pub(crate) fn mean_length(&self, limit: usize) -> Option<f64> {
        let (responses, ended) = (self.responses.0 as f64, self.responses.1 as f64);
        let mean = self.work.sampled / responses;
        if self.limit >= limit {
            return mean.is_finite().then_some(mean);
        }
        let chance = ended / self.work.sampled;
        (chance > 0.0).then(|| (1.0 - (1.0 - chance).max(0.0).powf(limit as f64)) / chance.min(1.0))
    }
}

impl StepForecast<'_> {
    /// Returns the seconds of each phase in a step of `rows` rows with this work.
    pub(crate) fn phases(&self, rows: usize, work: &StepWork) -> Vec<(String, f64)> {
        let seconds = |phase: &str, measured: f64| self.seconds(phase, measured, rows, work);
        self.larger.phases.iter().map(|(phase, measured)| (phase.clone(), seconds(phase, *measured))).collect()
    }

    /// Fits seconds = a · passes + b · tokens through both steps. Where this would give a negative part, all of the time is of
    /// the other part.
    fn seconds(&self, phase: &str, measured: f64, rows: usize, work: &StepWork) -> f64 {
        let passes = |rows: usize| (self.passes)(phase, rows);
        let (p, w) = (passes(rows), work.of(phase));
        let (p2, w2, t2) = (passes(self.larger.rows), self.larger.work.of(phase), measured);
        if (p, w) == (p2, w2) {
            return t2;
        }
        let by_tokens = if w2 > 0.0 { t2 * w / w2 } else { t2 };
        let Some((smaller, t1)) = self.smaller.and_then(|smaller| Some((smaller, smaller.seconds(phase)?))) else {
            return by_tokens;
        };
        let (p1, w1) = (passes(smaller.rows), smaller.work.of(phase));
        let determinant = p1 * w2 - p2 * w1;
        let (a, b) = ((t1 * w2 - t2 * w1) / determinant, (p1 * t2 - p2 * t1) / determinant);
        match (a, b) {
            (a, b) if !a.is_finite() || !b.is_finite() || a < 0.0 => by_tokens,
            (_, b) if b < 0.0 => t2 * p / p2,
            (a, b) => a * p + b * w,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rows: usize, limit: usize, update: f64, sampled: f64, responses: (usize, usize)) -> TimedStep {
        let work = StepWork { given: 0.0, sampled, generated: sampled };
        TimedStep { rows, limit, phases: vec![("update_actor".to_owned(), update)], work, responses }
    }

    #[test]
    fn seconds_grow_with_updates_and_tokens() {
        // An update takes 0.5 s and a token 1 ms; an update reads 8 rows.
        let passes = |_: &str, rows: usize| rows.div_ceil(8) as f64;
        let (one, two) = (step(4, 9, 0.6, 100.0, (4, 4)), step(8, 9, 0.7, 200.0, (8, 8)));
        let of = |smaller, larger, tokens: f64, rows: usize| {
            let work = StepWork { sampled: tokens, ..StepWork::default() };
            StepForecast { smaller, larger, passes: &passes }.phases(rows, &work)[0].1
        };
        assert!((of(Some(&one), &two, 800.0, 32) - 2.8).abs() < 1e-9);
        assert_eq!(of(None, &two, 800.0, 32), 2.8, "without a second step, time is of tokens");
        assert_eq!(of(Some(&one), &two, 200.0, 8), 0.7, "a measured step is itself");
        let faster = step(8, 9, 0.5, 200.0, (8, 8));
        assert_eq!(of(Some(&one), &faster, 800.0, 32), 2.0, "tokens without a cost: updates alone");
        let steeper = step(8, 9, 1.8, 200.0, (8, 8));
        assert!((of(Some(&one), &steeper, 800.0, 32) - 7.2).abs() < 1e-9, "updates without a cost: tokens alone");
    }

    #[test]
    fn the_length_of_cut_responses_is_estimated() {
        assert_eq!(step(1, 8, 1.0, 40.0, (8, 6)).mean_length(8), Some(5.0), "at the limit itself the mean is known");
        assert_eq!(step(1, 8, 1.0, 64.0, (8, 0)).mean_length(100), None);
        // One of 16 tokens is the last: 16 tokens, less what the limit cuts.
        let mean = step(1, 8, 1.0, 64.0, (10, 4)).mean_length(1000).unwrap();
        assert!((mean - 16.0).abs() < 1e-6, "{mean}");
        let mean = step(1, 8, 1.0, 64.0, (10, 4)).mean_length(16).unwrap();
        assert!((mean - 16.0 * (1.0 - (15.0_f64 / 16.0).powi(16))).abs() < 1e-9, "{mean}");
    }
}
