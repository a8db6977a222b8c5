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

/// Share of a product below which a determinant is noise: the ratio of passes to tokens is nearly the same in both steps.
const ALIKE: f64 = 0.2;

/// The last two measured steps, the larger one last.
pub(crate) struct StepForecast<'a> {
    pub smaller: Option<&'a TimedStep>,
    pub larger: &'a TimedStep,
    /// Passes of a phase in a step, by its rows and the tokens of its longest response.
    pub passes: &'a dyn Fn(&str, usize, f64) -> f64,
}

impl StepWork {
    fn of(&self, phase: &str) -> f64 {
        if SAMPLING.contains(&phase) { self.generated } else { self.given + self.sampled }
    }
}

/// Returns the expected length of the longest of `responses`, each with this mean length and cut at `limit`: mean · (1 + 1/2 + … +
/// 1/n), the largest of n exponential variables.
pub(super) fn longest(mean: f64, responses: usize, limit: usize) -> f64 {
    let sum: f64 = (1..=responses.min(1 << 20)).map(|n| 1.0 / n as f64).sum();
    (mean * sum).min(limit as f64)
}

impl TimedStep {
    /// Returns the expected length of its longest response.
    fn longest(&self) -> f64 {
        longest(self.work.sampled / self.responses.0.max(1) as f64, self.responses.0, self.limit)
    }

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
    /// Returns the seconds of each phase in a step of `rows` rows with this work, and a longest response of `longest` tokens.
    pub(crate) fn phases(&self, rows: usize, longest: f64, work: &StepWork) -> Vec<(String, f64)> {
        let seconds = |phase: &str, measured: f64| self.seconds(phase, measured, (self.passes)(phase, rows, longest), work);
        self.larger.phases.iter().map(|(phase, measured)| (phase.clone(), seconds(phase, *measured))).collect()
    }

    /// Fits seconds = a · passes + b · tokens through both steps. Where this would give a negative part, all of the time is of
    /// the other part. Where passes grew like tokens, time is of tokens.
    fn seconds(&self, phase: &str, measured: f64, p: f64, work: &StepWork) -> f64 {
        let passes = |step: &TimedStep| (self.passes)(phase, step.rows, step.longest());
        let w = work.of(phase);
        let (p2, w2, t2) = (passes(self.larger), self.larger.work.of(phase), measured);
        if (p, w) == (p2, w2) {
            return t2;
        }
        let by_tokens = if w2 > 0.0 { t2 * w / w2 } else { t2 };
        let Some((smaller, t1)) = self.smaller.and_then(|smaller| Some((smaller, smaller.seconds(phase)?))) else {
            return by_tokens;
        };
        let (p1, w1) = (passes(smaller), smaller.work.of(phase));
        let determinant = p1 * w2 - p2 * w1;
        if determinant.abs() < ALIKE * (p1 * w2).max(p2 * w1) {
            return by_tokens;
        }
        let (a, b) = ((t1 * w2 - t2 * w1) / determinant, (p1 * t2 - p2 * t1) / determinant);
        match (a, b) {
            (a, _) if a < 0.0 => by_tokens,
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
        let passes = |_: &str, rows: usize, _: f64| rows.div_ceil(8) as f64;
        let (one, two) = (step(4, 9, 0.6, 100.0, (4, 4)), step(8, 9, 0.7, 200.0, (8, 8)));
        let of = |smaller, larger, tokens: f64, rows: usize| {
            let work = StepWork { sampled: tokens, ..StepWork::default() };
            StepForecast { smaller, larger, passes: &passes }.phases(rows, 9.0, &work)[0].1
        };
        assert!((of(Some(&one), &two, 800.0, 32) - 2.8).abs() < 1e-9);
        assert_eq!(of(None, &two, 800.0, 32), 2.8, "without a second step, time is of tokens");
        assert_eq!(of(Some(&one), &two, 200.0, 8), 0.7, "a measured step is itself");
        let faster = step(8, 9, 0.5, 200.0, (8, 8));
        assert_eq!(of(Some(&one), &faster, 800.0, 32), 2.0, "tokens without a cost: updates alone");
        let steeper = step(8, 9, 1.8, 200.0, (8, 8));
        assert!((of(Some(&one), &steeper, 800.0, 32) - 7.2).abs() < 1e-9, "updates without a cost: tokens alone");
        let (eight, sixteen) = (step(8, 9, 0.7, 200.0, (8, 8)), step(16, 9, 1.3, 400.0, (16, 16)));
        let both_grew = of(Some(&eight), &sixteen, 800.0, 16);
        assert!((both_grew - 2.6).abs() < 1e-9, "updates and tokens grew alike: {both_grew}");
    }

    /// A decode step takes 20 ms and 0.02 ms more for each sequence.
    #[test]
    fn generation_takes_its_decode_steps() {
        let seconds = |steps: f64, sequences: f64| steps * (0.02 + 2e-5 * sequences);
        let timed = |rows: usize, limit: usize| {
            let sampled = (rows * 8 * limit) as f64;
            let work = StepWork { given: 0.0, sampled, generated: sampled };
            let phases = vec![("gen".to_owned(), seconds(limit as f64, rows as f64 * 8.0))];
            TimedStep { rows, limit, phases, work, responses: (rows * 8, 0) }
        };
        let passes = |_: &str, _: usize, longest: f64| longest;
        let work = StepWork { sampled: 524_288.0, generated: 524_288.0, ..StepWork::default() };
        for (smaller, larger) in [(timed(8, 16), timed(64, 16)), (timed(64, 16), timed(64, 128))] {
            let forecast = StepForecast { smaller: Some(&smaller), larger: &larger, passes: &passes };
            let found = forecast.phases(64, 1024.0, &work)[0].1;
            let right = seconds(1024.0, 512.0);
            assert!((found / right - 1.0).abs() < 0.01, "{found} in place of {right}");
        }
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
